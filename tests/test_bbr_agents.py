"""The study of several agents, drawn and judged from made-up trainings, without PyTorch."""

import json

import pytest

from headway._native import UsageError
from headway.reproduce.bbr_tuning.agents import agents, figure, read
from headway.reproduce.claim import Verdict
from headway.reproduce.lab import Lab, MissingError
from headway.reproduce.measured import Measured


def row(count, shared, seed, *rewards):
    curve = [
        {"decisions": 100 * k, "reward": reward, "right": 0.5, "utilisation": 0.9, "jain": 0.8}
        for k, reward in enumerate(rewards)
    ]
    return {"schema": 1, "agents": count, "shared": shared, "seed": seed, "curve": curve}


@pytest.fixture
def rows():
    found = [row(0, "nothing", 0, 0.4)]
    for seed in range(1, 6):
        off = seed / 1000
        found.append(row(1, "nothing", seed, 0.4, 0.58, 0.6 + off))
        found.append(row(4, "nothing", seed, 0.4, 0.45, 0.5 + off))
        found.append(row(4, "policies", seed, 0.4, 0.45, 0.55 + off))
        found.append(row(4, "everything", seed, 0.4, 0.5, 0.61 + off))
    return found


def test_claims_compare_pairs_of_seeds(rows):
    drawn = agents(rows)
    sharing, episodes, scale = drawn.claims
    expected = sum(100 * ((0.61 + s / 1000) / (0.5 + s / 1000) - 1) for s in range(1, 6)) / 5
    assert sharing.ours.mean == pytest.approx(expected)
    assert sharing.verdict is Verdict.HOLDS
    expected = sum(100 * ((0.61 + s / 1000) / (0.55 + s / 1000) - 1) for s in range(1, 6)) / 5
    assert episodes.ours.mean == pytest.approx(expected)
    assert episodes.verdict is scale.verdict is Verdict.HOLDS


def test_a_training_that_never_nears_the_best_counts_with_its_full_length(rows):
    titles, *cells = agents(rows).table
    needed = {(one[0], one[1]): (one[-3], one[-1]) for one in cells}
    assert titles[-3] == "decisions to 95%"
    # The best mean is 0.613; 95% of it is 0.582.
    assert needed["4", "nothing"] == ("200", "5")
    assert needed["4", "everything"] == ("200", "0")
    assert cells[-1][0] == "none (BBR)"


def test_the_result_names_the_version_that_trained(rows):
    assert not any("trained by" in note for note in agents(rows).notes)
    made = [one | {"code_version": f"0.1.0+{one['agents']}"} for one in rows]
    assert "The teams were trained by Headway 0.1.0+0, 0.1.0+1, 0.1.0+4." in agents(made).notes


def test_one_seed_has_no_interval_and_leaves_claims_open(rows):
    drawn = agents([one for one in rows if one["seed"] <= 1])
    assert all(claim.verdict is Verdict.OPEN for claim in drawn.claims)


def test_the_figure_is_made_of_the_trainings(rows, tmp_path):
    with pytest.raises(MissingError, match=r"python -m headway\.train\.team_study"):
        next(figure(Lab(models=tmp_path)))
    (tmp_path / "bbr-team").mkdir()
    (tmp_path / "bbr-team/runs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    making = figure(Lab(models=tmp_path))
    assert next(making) == []
    with pytest.raises(StopIteration) as made:
        making.send(Measured({}))
    assert made.value.value.table == agents(rows).table


def test_an_invalid_study_gives_a_one_line_error(rows, tmp_path):
    file = tmp_path / "runs.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in rows))
    assert read(file) == rows
    file.write_text('{"schema": 2}\n')
    with pytest.raises(UsageError, match="schema 1"):
        read(file)
    with pytest.raises(UsageError, match="cannot be read"):
        read(tmp_path / "none")
    with pytest.raises(UsageError, match="no trained team"):
        agents([rows[0]])
