"""The folder of a trial: its contents, and the refused folders."""

import json
import re

import pytest

from headway._native import UsageError
from headway.path_trial.folder import FACTS, ROWS, TrialFolder
from headway.path_trial.plan import Plan
from path_trials import SCHEMES, Transfers, row


def test_a_row_left_unfinished_by_a_crash_is_overwritten_by_the_next_one(tmp_path):
    Transfers(30).run(tmp_path)
    with (tmp_path / ROWS).open("ab") as file:
        file.write(b'{"round": 1, "sch')
    kept = TrialFolder(tmp_path)
    assert len(kept.rows) == 2
    kept.add(row(1, "cubic"))
    lines = (tmp_path / ROWS).read_text().splitlines()
    assert [json.loads(line)["round"] for line in lines] == [0, 0, 1]


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (Plan("there", SCHEMES, 5.0, 2), "with --seed 1, not 2"),
        (Plan("there", SCHEMES, 4.0, 1), "with --seconds 5.0, not 4.0"),
        (Plan("elsewhere", SCHEMES, 5.0, 1), "with --to there, not elsewhere"),
        (Plan("there", {"cubic": "cubic"}, 5.0, 1), "with --schemes cubic,owl, not cubic;"),
        (
            Plan("there", dict(reversed(SCHEMES.items())), 5.0, 1),
            "with --schemes cubic,owl, not owl,cubic;",
        ),
    ],
)
def test_the_folder_of_another_trial_is_refused(tmp_path, plan, says):
    Transfers(30).run(tmp_path)
    with pytest.raises(UsageError, match=says):
        TrialFolder(tmp_path).must_fit(plan)


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("kernel", "was measured by kernel another, and this is kernel "),
        ("code_version", "was measured by Headway another, and this is Headway "),
    ],
)
def test_rounds_of_another_kernel_or_headway_are_not_mixed_with_these(tmp_path, key, says):
    Transfers(30).run(tmp_path)
    facts, plan = json.loads((tmp_path / FACTS).read_text()), Plan("there", SCHEMES, 5.0, 1)
    TrialFolder(tmp_path).must_fit(plan)
    (tmp_path / FACTS).write_text(json.dumps(facts | {key: "another"}))
    with pytest.raises(UsageError, match=says):
        TrialFolder(tmp_path).must_fit(plan)


@pytest.mark.parametrize(
    ("facts", "rows", "says"),
    [
        (None, "", "holds rows.jsonl without its try.json"),
        ("[]", "", "try.json is not a trial's"),
        ('{"schema": 2, "seconds": 1, "schemes": {}}', "", "schema 2, not 1"),
        ('{"schema": 1, "seconds": 1, "schemes": {}}', "{}\n", "rows.jsonl:1: not a row"),
        ('{"schema": 1, "seconds": 1, "schemes": {}}', "no\n", "rows.jsonl:1: not a row"),
    ],
)
def test_a_folder_of_something_else_is_refused(tmp_path, facts, rows, says):
    if facts:
        (tmp_path / FACTS).write_text(facts)
    (tmp_path / ROWS).write_text(rows)
    with pytest.raises(UsageError, match=re.escape(says)):
        TrialFolder(tmp_path)
