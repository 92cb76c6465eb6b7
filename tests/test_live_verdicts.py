"""The verdicts of live tests, from made-up attempts."""

import json

import pytest

import live_tests
import verdicts
import witness
from live_tests import Run
from verdicts import Attempt, Needs
from witness import Evidence, Sample, Stall

QUIET = Evidence(seconds=10, gap_ms=3, stood_still=0.0003, steal=0.001, others=0.01)
BUSY = Evidence(
    seconds=10,
    gap_ms=212,
    stood_still=0.0212,
    steal=0.09,
    others=0.01,
    stalls=[{"cpu": 1, "at_s": 3.4, "ms": 212}],
)
RIGHT = Attempt("right", QUIET)
RIGHT_THOUGH_BUSY = Attempt("right", BUSY)
WRONG = Attempt("wrong", QUIET, "7 Mbit/s")
WRONG_AND_BUSY = Attempt("wrong", BUSY, "3 Mbit/s")
UNSURE = Attempt("unsure", QUIET, "plain Cubic had 9 Mbit/s")
TOO_BUSY = "cpu1 stood still 212 ms at 3.4 s, cpu1 stood still for 2.1 % of the time, steal 9 %"


@pytest.mark.parametrize(
    ("attempts", "verdict"),
    [
        ([RIGHT], "PASS"),
        ([RIGHT_THOUGH_BUSY], "PASS"),
        ([WRONG_AND_BUSY, RIGHT], "PASS"),
        ([UNSURE, RIGHT], "PASS"),
        ([WRONG, RIGHT], "SUSPECT"),
        ([WRONG, WRONG_AND_BUSY, RIGHT], "SUSPECT"),
        ([WRONG, WRONG], "FAIL"),
        ([WRONG, WRONG_AND_BUSY, WRONG], "FAIL"),
        ([WRONG_AND_BUSY, WRONG, WRONG], "FAIL"),
        ([WRONG, UNSURE, WRONG], "FAIL"),
        ([WRONG_AND_BUSY] * 3, "INCONCLUSIVE"),
        ([WRONG, WRONG_AND_BUSY, WRONG_AND_BUSY], "INCONCLUSIVE"),
        ([WRONG_AND_BUSY, WRONG_AND_BUSY, WRONG], "INCONCLUSIVE"),
        ([UNSURE] * 3, "INCONCLUSIVE"),
        ([Attempt("skipped", QUIET, "no bbr")], "SKIPPED"),
    ],
)
def test_a_verdict_is_given_at_the_last_of_these_attempts_and_not_before(attempts, verdict):
    for some in range(len(attempts)):
        assert verdicts.decide(attempts[:some], Needs()) is None
    assert verdicts.decide(attempts, Needs())[0] == verdict


def test_the_reason_names_the_failure_or_the_busy_resource():
    def why(*attempts):
        return verdicts.decide(attempts, Needs())[1]

    assert why(WRONG, WRONG) == "wrong twice on a quiet machine: 7 Mbit/s"
    assert why(WRONG, RIGHT) == "wrong once on a quiet machine: 7 Mbit/s"
    assert why(*[WRONG_AND_BUSY] * 3) == f"machine too busy: {TOO_BUSY}"
    once = "; it was also wrong once on a quiet machine"
    assert why(WRONG_AND_BUSY, WRONG_AND_BUSY, WRONG) == f"machine too busy: {TOO_BUSY}{once}"
    quiet = "the machine was quiet, but the test said: plain Cubic had 9 Mbit/s"
    assert why(*[UNSURE] * 3) == quiet


@pytest.mark.parametrize("bound", ["gap_ms", "stood_still", "steal", "others", "waited_ms"])
def test_a_machine_at_the_bound_is_quiet_and_above_it_is_busy(bound):
    needs = Needs(**{bound: 0.25})
    idle = dict.fromkeys(("gap_ms", "stood_still", "steal", "others"), 0.0)
    for seen, number in ((0.25, 0), (0.2501, 1)):
        evidence = Evidence(seconds=1, **(idle | {bound: seen}))
        assert len(needs.missed(evidence)) == number
        twice = [Attempt("wrong", evidence)] * 2
        assert (verdicts.decide(twice, needs) is None) == bool(number)
        assert Needs(**{bound: None}).missed(evidence) == []


def test_evidence_is_written_in_one_line():
    assert verdicts.in_words(BUSY) == "longest stall 212 ms, steal 9 %, other processes 1 %"


def test_delays_caused_by_headway_itself_do_not_excuse_a_failure():
    own = {"waited_ms": 900.0, "run_delay_ms": {"headwayd": 900.0}, "pressure": 0.9}
    waited = Evidence(**(QUIET.to_dict() | own))
    assert Needs().missed(waited) == []
    assert Needs(waited_ms=100).missed(waited) == ["a process waited 900 ms for a CPU"]


def test_needs_are_read_from_a_line_of_a_rust_test():
    assert Needs.read("gap_ms=20 steal=0.01") == Needs(gap_ms=20, steal=0.01)
    assert Needs.read("") == Needs()
    with pytest.raises(TypeError, match="gap"):
        Needs.read("gap=20")


def sample(at, **counters):
    """Two CPUs that were idle except for the given values."""
    given = {"idle_s": 2.0 * at, "stolen_s": 0.0, "own_s": 0.0, "pressure_s": 0.0}
    return Sample(at=at, cpu_s=2.0 * at, **(given | counters))


def test_counters_are_taken_from_before_a_window_to_after_it():
    waited = {"headwayd": 0.7, "live": 0.1}
    samples = [
        sample(0),
        sample(10, idle_s=19, own_s=1, waited_s={"headwayd": 0.5}),
        sample(20, idle_s=33, own_s=3, stolen_s=1, pressure_s=4, waited_s=waited),
        sample(30, idle_s=33, own_s=3, stolen_s=20, pressure_s=14),
    ]
    found = witness.sum_up([(11, 19)], [], samples)
    assert found.seconds == 8
    assert found.steal == 1 / 20
    assert found.others == (20 - 14 - 2 - 1) / 20
    assert found.pressure == 0.4
    assert found.run_delay_ms == {"headwayd": 200, "live": 100}
    assert (found.gap_ms, found.stood_still, found.stalls) == (0, 0, [])


def test_windows_are_summed_and_time_between_them_is_left_out():
    stolen = {0: 0, 10: 0.2, 20: 10, 30: 10.4}
    samples = [sample(at, stolen_s=seconds) for at, seconds in stolen.items()]
    between = Stall(0, True, 15, 1.0)
    found = witness.sum_up([(0, 10), (20, 30)], [between], samples)
    assert (found.seconds, found.steal, found.gap_ms) == (20, 0.6 / 40, 0)


def test_time_that_is_in_two_windows_counts_once():
    """A shared fixture is set up inside the first test that uses it."""
    assert witness.merged([(5, 9), (1, 4), (6, 7), (4, 4.5)]) == [(1, 4.5), (5, 9)]
    found = witness.sum_up([(12, 14), (10, 20)], [Stall(0, True, 13, 1)], [sample(10), sample(20)])
    assert (found.seconds, found.stood_still) == (10, 0.1)


def test_a_window_that_no_sample_follows_ends_with_the_last_one():
    found = witness.sum_up([(1, 99)], [], [sample(2), sample(12, stolen_s=2)])
    assert found.steal == 2 / 20


def test_a_stall_counts_if_it_reaches_into_the_window():
    early, reaching, inside, late = (
        Stall(0, True, 8.0, 1.0),
        Stall(0, True, 9.9, 0.2),
        Stall(1, True, 13.4, 0.3),
        Stall(0, True, 20.0, 5.0),
    )
    waits = Stall(0, False, 12.0, 0.9)
    all_ = [early, reaching, inside, waits, late]
    found = witness.sum_up([(10, 20)], all_, [sample(10), sample(20)])
    assert (found.gap_ms, found.waited_ms) == (300, 900)
    assert found.stood_still == 0.03, "of the CPU that stood still longest"
    assert found.stalls == [{"cpu": 1, "at_s": 3.4, "ms": 300}, {"cpu": 0, "at_s": -0.1, "ms": 200}]


def test_a_cpu_that_stalls_often_is_reported_by_its_share():
    stalls = [Stall(cpu, True, at, 0.03) for at in range(10, 20) for cpu in (0, 1)]
    found = witness.sum_up([(10, 20)], stalls, [sample(10), sample(20)])
    assert (found.gap_ms, found.stood_still) == (30, 0.03)
    assert Needs().missed(found) == ["cpu0 stood still for 3 % of the time"]
    assert len(found.stalls) == witness.WORST


def test_lines_of_a_watcher_count_as_stalls_above_the_threshold():
    text = "10.000000 0.000060\n10.100000 0.212000\n10.400000 0.001000\n"
    lines = witness.read_lines(text, 1, True)
    assert witness.with_silence(lines, 10.5) == [Stall(1, True, 10.1, 0.212)]


def test_a_silent_watcher_counts_as_a_stall():
    lines = witness.read_lines("10.000000 0.000000\n", 0, True)
    assert witness.with_silence(lines, 10.2) == []
    (silent,) = witness.with_silence(lines, 12.0)
    assert (silent.since, silent.seconds) == (10.0, 2.0)


RUN = Run("2026-01-01T00:00:00+00:00", 2, [], "abc", False, "6.18", "2 x EPYC")


def line(name, verdict="PASS", of=RUN, evidence=QUIET, **other):
    attempt = Attempt("right", evidence, measured=["12 Mbit/s | 20 ms"])
    test = live_tests.Test(name, Needs(), [attempt])
    return live_tests.result(of, test, verdict, "") | other


def started(at, **other):
    return Run(**(vars(RUN) | {"started": at} | other))


def test_results_are_read_though_the_last_line_was_cut_off(tmp_path):
    path = tmp_path / "results.jsonl"
    assert live_tests.read_results(path) == []
    live_tests.keep(path, line("a"))
    live_tests.keep(path, line("b"))
    whole = path.read_text()
    path.write_text(whole + whole[:40])
    assert [one["test"] for one in live_tests.read_results(path)] == ["a", "b"]
    assert Evidence(**live_tests.read_results(path)[0]["attempts"][0]["evidence"]) == QUIET


def test_a_run_continues_the_last_one_with_the_same_settings():
    lines = [line("old", of=started("2025")), line("a")]
    again = started("2027")
    assert live_tests.to_resume(lines, again) == (RUN, {"a"})
    assert live_tests.to_resume([], again) == (again, set())
    for other in ({"commit": "def"}, {"chosen": ["rates"]}, {"of": 3}, {"is_dirty": True}):
        unlike = started("2027", **other)
        assert live_tests.to_resume(lines, unlike) == (unlike, set())


def test_the_table_shows_the_newest_complete_run():
    full = [line("a"), line("b")]
    stopped = [line("a", of=started("2027"))]
    chosen = [line("a", of=started("2028", of=1, chosen=["a"]))]
    assert live_tests.newest_full(full + stopped + chosen) == full
    assert live_tests.newest_full(stopped + chosen) == []


def test_the_page_keeps_its_head_and_has_a_row_a_test():
    busy = "machine too busy: steal 9 %"
    lines = [line("b", "INCONCLUSIVE", why=busy, evidence=BUSY), line("a")]
    page = live_tests.page(f"# Head\n{live_tests.MARK}old", json.loads(json.dumps(lines)))
    assert page.startswith(f"# Head\n{live_tests.MARK}\n")
    assert "old" not in page
    assert "Verdicts: 1 INCONCLUSIVE, 1 PASS." in page
    assert page.splitlines()[-2:] == [
        f"| a | PASS | 12 Mbit/s \\| 20 ms | {verdicts.in_words(QUIET)} | 1 |",
        f"| b | INCONCLUSIVE | {busy}; 12 Mbit/s \\| 20 ms | {verdicts.in_words(BUSY)} | 1 |",
    ]
    assert live_tests.page(page, lines) == page, "written again, it is the same"


def test_only_a_strict_run_fails_on_inconclusive_tests():
    passed, unclear = line("a", "SUSPECT"), line("b", "INCONCLUSIVE")
    failed = line("c", "FAIL")
    assert live_tests.exit_code([passed], is_strict=True) == 0
    assert live_tests.exit_code([passed, unclear], is_strict=False) == 0
    assert live_tests.exit_code([passed, unclear], is_strict=True) == live_tests.INCONCLUSIVE
    assert live_tests.exit_code([failed, unclear], is_strict=True) == 1
    assert live_tests.count_verdicts([passed, unclear, passed]) == "1 INCONCLUSIVE, 2 SUSPECT"


class Sessions:
    """A group of tests whose sessions have given outcomes and are recorded."""

    def __init__(self, *sessions):
        names = dict.fromkeys(name for session in sessions for name in session)
        self.tests = [live_tests.Test(name, Needs()) for name in names]
        self._sessions = list(sessions)
        self.asked = []

    def run(self, names):
        self.asked.append(names)
        for name, outcome in self._sessions.pop(0).items():
            yield live_tests.Ran(name, outcome, outcome, [], [(1, 2)], seconds=1)


class OnQuietMachine:
    def evidence(self, _windows):
        return QUIET


@pytest.fixture
def results(monkeypatch, tmp_path):
    """The file of results, in a folder of this test. There are no waits."""
    monkeypatch.setattr(live_tests, "RESULTS", tmp_path / "results.jsonl")
    monkeypatch.setattr(live_tests, "LOG", tmp_path / "log")
    monkeypatch.setattr(live_tests, "QUIET_S", 0)
    return live_tests.RESULTS


def test_a_test_without_a_verdict_runs_again_in_a_new_session(results):
    group = Sessions(
        {"a": "right", "b": "wrong", "c": "wrong"},
        {"b": "wrong", "c": "right"},
    )
    live_tests.Session(started("2026", of=3), [group], OnQuietMachine()).hold()
    assert group.asked == [["a", "b", "c"], ["b", "c"]]
    kept = {one["test"]: one["verdict"] for one in live_tests.read_results(results)}
    assert kept == {"a": "PASS", "b": "FAIL", "c": "SUSPECT"}


def test_tests_that_a_broken_session_never_began_run_in_the_next_one(results):
    group = Sessions({"a": "wrong"}, {"a": "right", "b": "right"})
    live_tests.Session(started("2026"), [group], OnQuietMachine()).hold()
    kept = {one["test"]: len(one["attempts"]) for one in live_tests.read_results(results)}
    assert kept == {"a": 2, "b": 1}


LIVE = """
import os
import pytest

pytestmark = [pytest.mark.live, pytest.mark.needs(gap_ms=20, steal=0.5)]

@pytest.fixture(scope="module")
def shared():
    print("measured")

def test_right(shared):
    print("12 Mbit/s")

@pytest.mark.needs(gap_ms=5)
def test_wrong():
    assert 3 > 17, "too slow"

def test_unsure():
    pytest.skip("inconclusive: plain Cubic was slow")

def test_skipped():
    pytest.skip("no bbr")

def test_narrow(shared, record_property):
    record_property("judged_between", (1.0, 2.0))

def test_that_ends_its_process():
    os._exit(9)

def test_never_began():
    pass
"""


@pytest.mark.usefixtures("results")
def test_pytest_reports_each_test_as_it_ends(tmp_path):
    path = tmp_path / "test_given.py"
    path.write_text(LIVE)
    ran = {one.name.rpartition("::")[2]: one for one in live_tests.PythonFile().run([str(path)])}
    assert {name: one.outcome for name, one in ran.items()} == {
        "test_right": "right",
        "test_wrong": "wrong",
        "test_unsure": "unsure",
        "test_skipped": "skipped",
        "test_narrow": "right",
        "test_that_ends_its_process": "wrong",
    }
    assert ran["test_right"].measured == ["measured", "12 Mbit/s"]
    assert "too slow" in ran["test_wrong"].why
    assert ran["test_unsure"].why == "plain Cubic was slow"
    assert ran["test_skipped"].why == "no bbr"
    fixture, itself = ran["test_right"].windows
    assert itself[0] <= fixture[0] <= fixture[1] <= itself[1], "set up in the first test that asks"
    assert ran["test_narrow"].windows == [[1.0, 2.0]]


@pytest.mark.usefixtures("results")
def test_needs_of_a_test_come_before_those_of_its_file(tmp_path):
    path = tmp_path / "test_given.py"
    path.write_text(LIVE)
    found = [*live_tests._pytest(["--collect-only", str(path)])]
    needs = {one["name"].rpartition("::")[2]: one["needs"] for one in found if "needs" in one}
    assert needs["test_right"] == {"gap_ms": 20, "steal": 0.5}
    assert needs["test_wrong"] == {"gap_ms": 5, "steal": 0.5}


RUST = """
running 1 test
test hosts::fills ... {result}

{section}:

---- hosts::fills stdout ----
{printed}

{section}:
    hosts::fills

test result: {result}. 1 passed; 0 failed; 0 ignored
"""
PANIC = """
thread 'hosts::fills' (71) panicked at crates/emu/tests/live/hosts.rs:9:5:
rate 3
of 20
note: run with `RUST_BACKTRACE=1`"""


@pytest.mark.parametrize(
    ("code", "printed", "outcome"),
    [
        (0, "rate 17\n\nlost 3", ("right", "")),
        (0, "inconclusive: the emulator was late", ("unsure", "the emulator was late")),
        (0, "skipped: bbr is missing", ("skipped", "bbr is missing")),
        (101, f"rate 3{PANIC}", ("wrong", "rate 3 of 20")),
        (-6, "rate 3", ("wrong", "exit code -6")),
    ],
)
def test_the_output_of_a_rust_test_gives_its_outcome(code, printed, outcome):
    section = "failures" if code else "successes"
    result = "FAILED" if code else "ok"
    shown = live_tests.shown(RUST.format(result=result, section=section, printed=printed))
    assert shown == printed
    assert live_tests.rust_outcome(code, shown) == outcome
