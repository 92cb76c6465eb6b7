"""Rounds of `headway try`: their order, their time, and the end of a trial.

Transfers are made up.
"""

import json
from itertools import permutations

import pytest

from headway._native import RunError, UsageError
from headway.cli.try_ import _finish
from headway.path_trial import trial
from headway.path_trial.folder import FACTS, TrialFolder
from headway.path_trial.plan import Plan
from headway.path_trial.run import Trial
from headway.path_trial.transfer import BusyError, EndedError
from headway.path_trial.trial import check_time, order, usual_seconds
from headway.path_trial.verdicts import summary, whole_rounds
from path_trials import SCHEMES, Transfers

PLAN = Plan("there", SCHEMES, 5.0, 1)


def test_each_order_of_a_round_occurs_about_as_often_as_any_other():
    orders = [tuple(order("abc", 1, number)) for number in range(600)]
    counts = {each: orders.count(each) for each in permutations("abc")}
    assert sum(counts.values()) == 600
    assert min(counts.values()) > 60


def test_the_seed_alone_decides_the_orders():
    assert [order("abc", 7, k) for k in range(50)] == [order("abc", 7, k) for k in range(50)]
    assert [order("abc", 7, k) for k in range(50)] != [order("abc", 8, k) for k in range(50)]


@pytest.mark.parametrize(
    ("minutes", "schemes", "seconds"),
    [(30, 3, 10.0), (15, 3, 9.0), (3, 3, 1.8), (5, 2, 4.5), (0.5, 2, 1.0)],
)
def test_transfers_are_short_enough_for_thirty_rounds_if_possible(minutes, schemes, seconds):
    assert usual_seconds(minutes, schemes) == seconds


def test_thirty_rounds_fit_including_the_time_without_sending(tmp_path):
    """The RTT is 50 ms: TCP's handshake, greeting, request, and 0.25 s until the last byte."""
    transfers = Transfers(usual_seconds(5, 2) + 3 * 0.05 + 0.25)
    kept, _ = transfers.run(tmp_path, minutes=5)
    assert len(whole_rounds(kept.rows, SCHEMES)) >= 30


def test_two_rounds_have_to_fit():
    plan = Plan("there", SCHEMES, 1.5, 1)
    check_time(0.1, plan)
    with pytest.raises(UsageError, match=r"2 rounds of 2 transfers of 1\.5 s take 0\.1; give"):
        check_time(0.09, plan)


@pytest.mark.parametrize(("takes", "rounds"), [(5, 6), (7, 4), (29, 1), (31, 1)])
def test_the_last_round_ends_as_close_to_the_given_minutes_as_possible(tmp_path, takes, rounds):
    """A round has two transfers, and there is a minute."""
    kept, shares = Transfers(takes).run(tmp_path)
    assert [one["round"] for one in kept.rows] == [k // 2 for k in range(2 * rounds)]
    assert shares[0] == min(1.0, takes / 60)


def test_each_round_has_each_scheme_once_in_the_drawn_order(tmp_path):
    transfers = Transfers(5)
    kept, _ = transfers.run(tmp_path)
    for number in range(6):
        of_round = [one for one in kept.rows if one["round"] == number]
        assert [one["scheme"] for one in of_round] == order(SCHEMES, 1, number)
        assert [one["place"] for one in of_round] == [0, 1]
    assert transfers.sent[0][1:] == (SCHEMES[transfers.sent[0][0]], 5.0)


def test_a_trial_resumes_and_leaves_out_the_incomplete_round(tmp_path):
    kept, _ = Transfers(5, [None, None, None, EndedError()]).run(tmp_path)
    assert len(kept.rows) == 3
    kept, _ = Transfers(5).run(tmp_path)
    # 15 of 60 s were over. Rounds 2 to 6 fit: five of them end at 65 s, which is closer than four.
    assert [one["round"] for one in kept.rows] == [0, 0, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
    assert [one["cubic"]["round"] for one in whole_rounds(kept.rows, SCHEMES)] == [0, 2, 3, 4, 5, 6]
    again, _ = Transfers(5).run(tmp_path)
    assert again.rows == kept.rows


def test_a_failed_transfer_discards_its_round_and_several_end_the_trial(tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "PATIENCE_S", 0.0)
    kept, said = Transfers(5, [None, None, RunError("broke")]).run(tmp_path)
    assert "broke; this round does not count" in said
    assert [one["round"] for one in kept.rows][:4] == [0, 0, 2, 2]
    (tmp_path / "other").mkdir()
    transfers = Transfers(1, [None, None, *[RunError("broke")] * 5])
    with pytest.raises(RunError, match="broke"):
        transfers.run(tmp_path / "other")
    assert len(transfers.sent) == 7


def test_a_controller_that_always_fails_ends_the_trial_even_if_others_work(tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "PATIENCE_S", 0.0)

    class OwlFails(Transfers):
        """Each transfer of owl except the first fails."""

        def send(self, scheme, *rest):
            has_sent = scheme in [name for name, *_ in self.sent]
            self.does = [RunError("broke") if scheme == "owl" and has_sent else None]
            return super().send(scheme, *rest)

    transfers = OwlFails(1)
    with pytest.raises(RunError, match="broke"):
        transfers.run(tmp_path, minutes=60)
    assert [scheme for scheme, *_ in transfers.sent].count("owl") == 1 + 5
    assert TrialFolder(tmp_path).failures == {"owl": 5}


def test_failed_transfers_are_counted_by_scheme_and_noted(tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "PATIENCE_S", 0.0)
    broken = [None, None, RunError("broke"), None, RunError("broke")]
    transfers = Transfers(5, broken)
    kept, _ = transfers.run(tmp_path)
    failed = [transfers.sent[2][0], transfers.sent[4][0]]
    assert kept.failures == {scheme: failed.count(scheme) for scheme in failed}
    assert json.loads((tmp_path / FACTS).read_text())["failures"] == kept.failures
    assert TrialFolder(tmp_path).failures == kept.failures
    found = summary(kept.rows, SCHEMES, {"owl": 2})["notes"]
    assert found[0].startswith("2 transfers of owl failed; the verdicts leave out these rounds")


def test_a_row_that_cannot_be_saved_ends_the_trial_at_once(tmp_path, monkeypatch):
    """Transfers load the path, and each further one would be discarded too."""
    transfers, add = Transfers(5), TrialFolder.add

    def full(self, row):
        if len(self.rows) == 2:
            raise RunError("rows.jsonl: No space left on device")
        add(self, row)

    monkeypatch.setattr(TrialFolder, "add", full)
    with pytest.raises(RunError, match="No space left"):
        transfers.run(tmp_path)
    assert len(transfers.sent) == 3


def test_a_trial_that_continues_after_showing_results_says_so(tmp_path, capsys):
    """Only more rounds count as a further look. Printing the same again changes no error rate."""
    shown = []
    for minutes in (1.0, 1.0, 2.0):
        transfers = Transfers(5)
        kept, _ = transfers.run(tmp_path, minutes=minutes)
        _finish(Trial(PLAN, kept, minutes, transfers.send), None, json=True)
        shown.append(json.loads(capsys.readouterr().out))
    assert [one["looks"] for one in shown] == [1, 1, 2]
    warned = [any("went on after its results" in note for note in one["notes"]) for one in shown]
    assert warned == [False, False, True]


def test_results_that_cannot_be_written_are_printed(tmp_path, monkeypatch, capsys):
    transfers = Transfers(5)
    kept, _ = transfers.run(tmp_path)

    def full(*_):
        raise RunError("try.json: No space left on device")

    monkeypatch.setattr(TrialFolder, "write", full)
    with pytest.raises(RunError, match="No space left"):
        _finish(Trial(PLAN, kept, 1.0, transfers.send), None, json=True)
    assert json.loads(capsys.readouterr().out)["rounds"] == 6


def test_a_trial_whose_first_transfer_fails_ends_at_once_and_leaves_nothing(tmp_path):
    with pytest.raises(RunError, match="broke"):
        Transfers(5, [RunError("broke")]).run(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_busy_server_does_not_count_as_a_failed_transfer(tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "PATIENCE_S", 0.0)
    kept, said = Transfers(5, [None, None, BusyError("busy")]).run(tmp_path)
    assert kept.failures == {}
    assert "busy; this round does not count" in said
