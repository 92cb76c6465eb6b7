"""The judgement of the tuner's figures, on made-up runs and numbers worked out by hand."""

import json
import os
import re
import sys
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from functools import cache
from types import SimpleNamespace

import pytest

from headway._native import RunError, Scenario, UsageError
from headway.models import load
from headway.report.svg import standalone
from headway.reproduce import engine, paper
from headway.reproduce.bbr_tuning import chain, live
from headway.reproduce.bbr_tuning.chain import TunedRun
from headway.reproduce.bbr_tuning.epochs import percent_gained, percent_soon, quantile
from headway.reproduce.bbr_tuning.faults import lost_rate_s, peak_rtt_ms, stale_btlbw_s, stale_rtprop_s
from headway.reproduce.bbr_tuning.fixed import pairs
from headway.reproduce.bbr_tuning.joining import converges_s, has_converged, peak_ms, reacts_s
from headway.reproduce.bbr_tuning.path import VANILLA, changes_s, ends_s, errors, percent_right, truth
from headway.reproduce.claim import Verdict
from headway.reproduce.lab import FULL, Lab, Settings
from headway.reproduce.measured import Measured
from headway.reproduce.run import lab_of
from headway.runs.collect import collect

SEED = 1


def a_run(scenario, of, flows=0):
    """A run of bins of 0.1 s.

    `of` gives rtprop, btlbw, throughput and RTT at a time, of flow n with `flows`.
    """
    seconds = Scenario.load(scenario).seconds
    times = [0.1 * k for k in range(round(10 * seconds))]

    def series(*which):
        rows = [of(t + 0.1, *which) for t in times]
        columns = dict(
            zip(("rtprop_ms", "btlbw_mbps", "throughput_mbps", "rtt_ms"), zip(*rows, strict=True), strict=True)
        )
        return {"time_s": times} | {name: list(values) for name, values in columns.items()}

    run = {"scenario": scenario, "seed": SEED, "seconds": seconds, "unfit": None}
    if flows:
        run["flows"] = [{"series": series(n)} for n in range(flows)]
        return run | {"series": run["flows"][0]["series"], "throughput_mbps": 9.0}
    run["series"] = series()
    return run | {"throughput_mbps": 9.0, "rtt_mean_ms": 50.0}


def test_the_path_matches_the_scenario():
    """The delay is 20 ms each way and, from 11 s on, 200. 1500 bytes at 20 Mbit/s are 0.6 ms."""
    run = a_run("bbr-rtt-step", lambda _: (40.6, 20.0, 20.0, 41.0))
    rates, rtts = truth(run)
    assert set(rates) == {20.0}
    for time, rtt in zip(ends_s(run), rtts, strict=True):
        assert rtt == pytest.approx(400.6 if time >= 11.0 else 40.6, abs=0.1)
    assert changes_s(a_run("bbr-rate-step", lambda _: (40.0, 20.0, 20.0, 41.0))) == [(3.0, 20.0, 5.0)]


def test_an_estimate_within_ten_percent_is_right():
    run = a_run("bbr-rtt-step", lambda t: (44.0 if t < 11 else None if t < 20 else 370.0, 20.0, 20.0, 41.0))
    # 10.9 s of 60 are right, 9 are unknown, and 40 are right.
    assert percent_right(run) == pytest.approx(100.0, abs=0.5)
    run = a_run("bbr-rtt-step", lambda _: (44.0, 20.0, 20.0, 41.0))
    assert percent_right(run) == pytest.approx(100 * 11 / 60, abs=0.5)
    assert errors(run)[-1] == pytest.approx(44 / 400.6 - 1, abs=1e-3)


def test_stale_estimates_and_lost_throughput_are_timed_from_the_step():
    def after(t):
        back = 20.0 if t < 11 or t >= 31 else 8.0
        # ProbeRTT, 35 s after the start, does not count as a loss of the link.
        return (40.6 if t < 20.5 else 400.6, 20.0, 0.5 if 45 <= t < 45.4 else back, 41.0)

    run = a_run("bbr-rtt-step", after)
    assert stale_rtprop_s(run) == pytest.approx(9.5, abs=0.11)
    # Five seconds have 18 Mbit/s on average with 20 in five sixths of them, and 8 in the rest: from
    # 30.2 s on.
    assert lost_rate_s(run) == pytest.approx(19.2, abs=0.2)
    assert stale_rtprop_s(a_run("bbr-rtt-step", lambda _: (40.6, 20.0, 20.0, 41.0))) == 49.0

    def slower(t):
        return (40.6, 20.0 if t < 6.2 else 5.4, 5.0, 40.0 + (300.0 if 4 < t < 7 else 0.0))

    run = a_run("bbr-rate-step", slower)
    assert stale_btlbw_s(run) == pytest.approx(3.2, abs=0.11)
    assert peak_rtt_ms(run) == 340.0


def test_full_rate_soon_after_an_increase():
    probe = a_run("bbr-epochs", lambda _: (30.0, 5.0, 0.0, 30.0))
    changes = changes_s(probe)
    assert len(changes) > 10

    def delayed(lag):
        def of(t):
            rate = Scenario.load("bbr-epochs").path(SEED, 60.0)[0][1]
            for at, _, after in changes:
                rate = after if t > at + lag else rate
            return (30.0, 5.0, rate, 30.0)

        return of

    assert percent_soon(a_run("bbr-epochs", delayed(0.5))) == 100.0
    # The second that ends 2 s after the increase is full if the flow needs 0.9 s, and not if it
    # needs 1.9.
    assert percent_soon(a_run("bbr-epochs", delayed(0.9))) == 100.0
    assert percent_soon(a_run("bbr-epochs", delayed(1.9))) < 20.0
    soon, late = a_run("bbr-epochs", delayed(0.5)), a_run("bbr-epochs", delayed(1.9))
    assert percent_gained(soon, late) == 100.0
    assert percent_gained(late, late) == 0.0
    assert percent_gained(late, soon) is None, "no increase is left to gain"
    assert quantile(0.5)(a_run("bbr-epochs", lambda t: (30.0, 5.0, t / 10, 30.0))) == pytest.approx(2.95, abs=0.1)


def test_flows_have_converged_once_all_keep_near_their_share():
    def five(settles):
        def of(t, n):
            rate = 2.0 if t > settles else 2.0 + 0.6 * (n - 2)
            return (50.0, 2.0, rate, 50.0 + (400.0 if 20 < t < 24 else 0.0))

        return of

    # A second's mean is within a quarter of 2 Mbit/s 0.6 s after the change from 0.8 to 2.
    run = a_run("bbr-join-leave", five(26.0), flows=5)
    # Three seconds later this has lasted long enough.
    assert converges_s(run) == pytest.approx(9.6, abs=0.3)
    assert has_converged(run)
    # Means of 5 s come within a quarter 2 s later; within 0.4 sooner.
    assert converges_s(run, width_s=5.0) == pytest.approx(converges_s(run) + 2.0, abs=0.6)
    assert converges_s(run, off=0.4) < converges_s(run)
    never = a_run("bbr-join-leave", five(60.0), flows=5)
    assert converges_s(never) == 25.0
    assert not has_converged(never)
    assert peak_ms(run) == 450.0
    assert reacts_s(run) == pytest.approx(3.9, abs=0.11)


def made(figure, run_of):
    lab = Lab(Settings(runs=6), stand_ins={f"bbr-tuner-{name}": "bbr" for name in ("ppo", "dqn", "a2c")})
    making = figure.make(lab)
    runs = {one: [run_of(one) | {"seed": SEED} for _ in range(6)] for one in next(making)}
    return claims_of(making, runs)


def claims_of(making, runs):
    return {claim.id: claim for claim in result_of(making, runs).claims}


def result_of(making, runs):
    with pytest.raises(StopIteration) as end:
        making.send(Measured(runs))
    assert "<svg" in standalone(end.value.value.chart)
    return end.value.value


def test_a_tuned_flow_that_is_better_is_found_to_be_and_a_worse_one_not():
    figures = {figure.name: figure for figure in paper("bbr-tuning").figures}

    def run_of(better):
        def of(one):
            tuned = one.label not in VANILLA
            lag = 2.0 if tuned is better else 9.5

            def at(t, *_):
                stale = 11 <= t < 11 + lag
                return (40.6 if t < 11 or stale else 400.6, 20.0, 8.0 if 11 <= t < 11 + 2 * lag else 20.0, 41.0)

            return a_run("bbr-rtt-step", at)

        return of

    found = made(figures["fig2a"], run_of(True))
    assert found["fig2a.stale"].verdict is Verdict.HOLDS
    assert found["fig2a.throughput"].verdict is Verdict.HOLDS
    assert found["fig2a.stale-tuned"].verdict is Verdict.HOLDS
    other = made(figures["fig2a"], run_of(False))
    assert other["fig2a.stale"].verdict is Verdict.FAILS
    assert other["fig2a.throughput-tuned"].verdict is Verdict.FAILS


@pytest.fixture
def trainings(tmp_path, monkeypatch):
    """Five trainings of PPO, three of DQN and two of A2C. The shipped models stand for them."""
    for kind, count in (("ppo", 5), ("dqn", 3), ("a2c", 2)):
        shipped = load(f"bbr-tuner-{kind}-v1")
        for seed in range(2, 2 + count):
            folder = tmp_path / f"bbr-tuner-{kind}-v1-seed-{seed}"
            folder.mkdir()
            for name, content in shipped.files.items():
                (folder / name).write_bytes(content)
    monkeypatch.setattr("headway.reproduce.lab.TRAININGS", tmp_path)
    return Lab(Settings(runs=15), first_seed=60001, trained=paper("bbr-tuning").trained)


def of_number(one, seed):
    """The number of a scheme's training that has a seed's run."""
    return one.seeds.index(seed) % len(one.models)


def test_each_training_has_thirty_runs_and_vanilla_as_many_seeds_as_all(trainings):
    figures = {figure.name: figure for figure in paper("bbr-tuning").figures}
    for name in ("fig2a", "fig2b", "fig3", "fig4"):
        wanted = {one.label: one for one in next(figures[name].make(replace(trainings, settings=FULL)))}
        assert {len(one.seeds) for one in wanted.values()} == {150}
        own = [task.spec for task in wanted["PPO"].tasks]
        # Seed 1 is the shipped one, because alpha and recipe were chosen with it.
        assert {re.search(r"seed-(\d)", spec)[1] for spec in own} == set("23456")
        assert {own.count(spec) for spec in own} == {30}


def test_figure_3_uses_trainings_as_samples_and_counts_those_of_each_claim(trainings):
    figure = {figure.name: figure for figure in paper("bbr-tuning").figures}["fig3"]
    making = figure.make(trainings)
    shares = {"PPO": (62, 64, 66, 68, 70), "DQN": (40, 55, 70), "A2C": (76, 77)}

    def run_of(one, seed):
        """RTprop is right for `share` % of the time.

        The rate follows at once in all runs of PPO and in no others.
        """
        scenario = Scenario.load("bbr-epochs")
        share = shares[one.label][of_number(one, seed)] if one.label in shares else 40
        at, rates, rtts = zip(*scenario.path(seed, 60.0), strict=True)

        def of(t):
            k = max(0, bisect_right(at, t) - 1)
            return (
                rtts[k] * (1 if t <= 0.6 * share + 0.01 else 2),
                5.0,
                rates[k] if one.label == "PPO" else 0.1,
                9.0,
            )

        return a_run("bbr-epochs", of) | {"seed": seed}

    wanted = next(making)
    found = claims_of(making, {one: [run_of(one, seed) for seed in one.seeds] for one in wanted})
    right = found["fig3.ppo-right"]
    # Student's of five means: 66 and 2.776 times the root of 10 / 5.
    assert right.ours.mean == pytest.approx(66, abs=0.2)
    assert right.ours.ci95 == pytest.approx((66 - 3.926, 66 + 3.926), abs=0.3)
    assert right.verdict is Verdict.HOLDS
    # 55 and 4.303 times the root of 225 / 3.
    assert found["fig3.dqn-right"].ours.ci95 == pytest.approx((55 - 37.27, 55 + 37.27), abs=1.0)
    assert found["fig3.dqn-right"].verdict is Verdict.OPEN
    assert found["fig3.faster"].verdict is Verdict.HOLDS
    assert found["fig3.where-vanilla-is-slow"].verdict is Verdict.HOLDS
    has = {
        name: trainings.training_seeds(wanted, claim.learners) for name, claim in found.items() if claim.of_learner
    }
    assert has == {
        "fig3.ppo-right": 5, "fig3.dqn-right": 3, "fig3.a2c-right": 2, "fig3.order": 2,
        "fig3.throughput": 5, "fig3.ppo-fast": 5, "fig3.faster": 5,
        "fig3.where-vanilla-is-slow": 5, "fig3.where-ppo-is-slow": 5,
    }  # fmt: skip


def test_figure_4_uses_trainings_as_samples(trainings):
    figure = {figure.name: figure for figure in paper("bbr-tuning").figures}["fig4"]
    making = figure.make(trainings)

    @cache
    def run_on(peak, settles):
        def joined(t, n):
            return (50.0, 2.0, 2.0 if t > settles else 2.0 + 0.6 * (n - 2), 50.0 + peak * (20 < t < 24))

        return a_run("bbr-join-leave", joined, flows=5)

    def run_of(one, seed):
        """The second training of PPO converges in none of its runs, the others in all.

        Vanilla converges in all.
        """
        if one.label != "PPO":
            return run_on(450.0, 41.0) | {"seed": seed}
        number = of_number(one, seed)
        return run_on(150.0 + 10 * number, 60.0 if number == 1 else 22.0) | {"seed": seed}

    found = result_of(making, {one: [run_of(one, seed) for seed in one.seeds] for one in next(making)})
    claims = {claim.id: claim for claim in found.claims}
    # Peaks of 200 to 240 ms against 500: 60 to 52% less; 2.776 times the root of 10 / 5.
    assert claims["fig4.peak"].ours.mean == pytest.approx(-56.0, abs=0.1)
    assert claims["fig4.peak"].ours.ci95 == pytest.approx((-59.93, -52.07), abs=0.1)
    assert claims["fig4.peak"].verdict is Verdict.HOLDS
    # 25 s of one training and 5.6 of four against 24.6.
    assert claims["fig4.converges"].ours.mean == pytest.approx(2.6, abs=0.1)
    assert claims["fig4.converges"].verdict is Verdict.OPEN
    titles, *rows = found.table
    (row,) = [row for row in rows if row[0] == "PPO"]
    at = titles.index("runs that converge (%)")
    # Not to 136: 80 and 2.776 times 20.
    assert row[at : at + 2] == ["80", "24 to 100"]


class FakeRun:
    """A run of a second, which has ended at once."""

    memory_bytes, progress = 1, 1.0

    def start(self):
        pass

    cancel = start

    def wait(self, _):
        return True

    def results(self):
        return [{"flow": "all"}]

    def series(self):
        return []


class FakeChain:
    """A run with a given number of windows set."""

    decides = "a-model"

    def __init__(self, *applied):
        self._applied, self.runs = iter(applied), []

    def counters(self):
        if (count := next(self._applied)) is None:
            raise RunError("gone")
        return {"applied": count}

    def begin_use(self):
        self.runs.append(self)
        return True

    def end_use(self):
        self.runs.pop()


@dataclass(frozen=True)
class FakeTask:
    world: str = "kernel"
    spec: str = "kernel-hw_ppo"
    seed: int = 7
    seconds: float = 1.0
    grid_ms: None = None
    scenario: Scenario = field(default_factory=lambda: Scenario.load("bbr-epochs"))

    __hash__ = object.__hash__


class FakeStore:
    def __init__(self):
        self.kept = []

    def add(self, task, *_):
        self.kept.append(task)


@pytest.mark.parametrize(
    ("applied", "says"),
    [
        ((3, 4), None),
        ((3, 3), "its flows were not tuned: host and agent of a-model set no window"),
        ((0, 0), "its flows were not tuned: host and agent of a-model set no window"),
        ((None, 4), "its flows were not tuned: host and agent of a-model did not answer"),
        ((3, None), "its flows were not tuned: host and agent of a-model did not answer"),
    ],
)
def test_a_run_without_any_window_set_fails_and_is_not_kept(applied, says):
    chain, store = FakeChain(*applied), FakeStore()
    task = FakeTask()
    failures = collect([task], 1, store, lambda *_: None, lambda _: TunedRun(FakeRun(), chain))
    assert failures == ([f"world kernel, kernel-hw_ppo, seed 7: {says}"] if says else [])
    assert store.kept == ([] if says else [task])
    assert not chain.runs


def test_the_engine_starts_a_run_with_the_chain_of_its_scheme(monkeypatch):
    begun = []
    monkeypatch.setattr(engine, "begin_run", lambda task, **_: task.spec)
    around = {"kernel-hw_ppo": lambda run: begun.append(run) or f"tuned {run}"}
    assert engine._begin_run(around, SimpleNamespace(spec="kernel-hw_ppo")) == "tuned kernel-hw_ppo"
    assert engine._begin_run(around, SimpleNamespace(spec="bbr")) == "bbr"
    assert begun == ["kernel-hw_ppo"]


def test_a_silent_program_is_given_up(monkeypatch, tmp_path):
    monkeypatch.setattr(chain, "BEGIN_S", 0.2)
    quiet = chain.Chain.__new__(chain.Chain)
    quiet._folder, quiet._running, quiet._before = tmp_path, [], None
    assert quiet._start([sys.executable, "-c", "import sys; sys.stdin.read()"]) == ""
    assert quiet._complaint() == "it ended, or hangs, without a message"
    quiet.close()


def test_runs_of_two_chains_do_not_overlap(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADWAYD_SOCKET", "before")
    one, other = (chain.Chain.__new__(chain.Chain) for _ in range(2))
    one._daemon, other._daemon = tmp_path / "one", tmp_path / "other"
    assert one.begin_use()
    assert one.begin_use()
    one.end_use()
    assert not other.begin_use()
    assert os.environ["HEADWAYD_SOCKET"] == str(tmp_path / "one")
    one.end_use()
    assert other.begin_use()
    assert os.environ["HEADWAYD_SOCKET"] == str(tmp_path / "other")
    other.end_use()


class Long(FakeRun):
    """It lasts for three looks."""

    looks = 3

    def start(self):
        self.began_among = list(chain._under_way)

    def cancel(self):
        self.looks = 0

    def wait(self, _):
        self.looks -= 1
        return self.looks <= 0

    def results(self):
        return []


def two_chains(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADWAYD_SOCKET", "before")
    monkeypatch.setattr(chain.Chain, "counters", lambda _: {"applied": 0})
    chains = [chain.Chain.__new__(chain.Chain) for _ in range(2)]
    for number, one in enumerate(chains):
        one._daemon, one.decides = tmp_path / str(number), f"{number}"
    return chains


def test_the_notes_count_how_often_cubic_took_a_flow():
    class Counted:
        decides = "a-model"

        def __init__(self, applied, trips):
            self._applied, self._trips = applied, trips

        def counters(self):
            return {"applied": self._applied}

        def guard_trips(self):
            if self._trips is None:
                raise RunError("gone")
            return self._trips

    chains = {live.DEFAULTS_LIVE: Counted(1, 0), live.PPO_LIVE: Counted(2, 3)}
    *_, takeovers = live._carried(chains)
    assert takeovers.endswith(f"{live.DEFAULTS_LIVE}: 0; {live.PPO_LIVE}: 3.")
    # One whose runs were finished before says nothing. One that is gone hides no other.
    (gone, takeovers) = live._carried({"finished": Counted(0, 0), "gone": Counted(1, None), "here": Counted(1, 2)})
    assert gone.endswith("gone.")
    assert takeovers.endswith("Cubic: here: 2.")


def test_a_run_waits_for_those_of_another_chain(monkeypatch, tmp_path):
    chains = two_chains(monkeypatch, tmp_path)
    tasks = [FakeTask(seed=seed) for seed in range(4)]
    runs = [Long() for _ in tasks]

    def begin(task):
        return TunedRun(runs[task.seed], chains[task.seed // 2])

    assert collect(tasks, 4, FakeStore(), lambda *_: None, begin) == []
    assert [set(run.began_among) for run in runs] == [{chains[0]}] * 2 + [{chains[1]}] * 2
    assert chain._under_way == []


def test_a_run_that_waits_for_another_chain_is_cancelled_at_once(monkeypatch, tmp_path):
    chains = two_chains(monkeypatch, tmp_path)
    first, second = TunedRun(Long(), chains[0]), TunedRun(Long(), chains[1])
    first.start()
    second.start()
    assert not second.wait(0)
    second.cancel()
    assert second.wait(0)
    first.cancel()
    assert first.wait(0)
    assert chain._under_way == []


def test_a_run_that_cannot_start_releases_its_chain(monkeypatch, tmp_path):
    class Refused(FakeRun):
        def start(self):
            raise UsageError("no memory")

    monkeypatch.setenv("HEADWAYD_SOCKET", "before")
    monkeypatch.setattr(chain.Chain, "counters", lambda _: {"applied": 0})
    one = chain.Chain.__new__(chain.Chain)
    one._daemon, one.decides = tmp_path / "one", "one"
    with pytest.raises(UsageError, match="no memory"):
        TunedRun(Refused(), one).start()
    assert chain._under_way == []


def test_a_fixed_pair_of_windows_that_does_better_is_found(monkeypatch):
    # Six pairs of the fifteen.
    monkeypatch.setattr("headway.reproduce.bbr_tuning.fixed.SECONDS", (2.0, 10.0))
    fixed = {figure.name: figure for figure in paper("bbr-tuning").figures}["fixed"]

    @cache
    def run_on(scenario, is_good):
        """A good pair converges 5 s after the fifth flow with a low peak.

        It recovers 2 s after the step.
        """

        def joined(t, n):
            rate = 2.0 if t > (22.0 if is_good else 42.0) else 2.0 + 0.6 * (n - 2)
            return (50.0, 2.0, rate, 50.0 + (50.0 if is_good else 400.0) * (20 < t < 24))

        def stepped(t):
            return (40.6 if t < 20 else 400.6, 20.0, 8.0 if 11 <= t < (13 if is_good else 29) else 20.0, 41.0)

        return a_run(scenario, joined, flows=5) if scenario == "bbr-join-leave" else a_run(scenario, stepped)

    def run_of(good):
        return lambda one: run_on(one.scenario.name, one.label == good)

    nothing = made(fixed, run_of(None))
    assert nothing["fixed.converges"].verdict is Verdict.HOLDS
    assert nothing["fixed.peak"].verdict is Verdict.FAILS
    assert nothing["fixed.reacts"].verdict is Verdict.FAILS
    assert nothing["fixed.throughput"].verdict is Verdict.FAILS
    better = made(fixed, run_of("2 s, 5 rounds"))
    assert better["fixed.converges"].verdict is Verdict.FAILS
    assert better["fixed.peak"].verdict is Verdict.HOLDS
    assert better["fixed.throughput"].verdict is Verdict.HOLDS


def test_the_fixed_pairs_are_the_choices_of_the_shipped_models():
    for name in ("ppo", "dqn", "a2c"):
        choices = load(f"bbr-tuner-{name}-v1").card["agent"]["action"]["choices"]
        assert [tuple(choice) for choice in choices] == pairs()


FIRST_CLAIMS = {
    "fig2a": ["fig2a.stale", "fig2a.throughput"],
    "fig2b": ["fig2b.stale", "fig2b.rtt"],
    "fig3": ["fig3.vanilla-right", "fig3.ppo-right"],
    "fig4": ["fig4.converges", "fig4.peak"],
}


@pytest.mark.parametrize("figure", FIRST_CLAIMS)
def test_quick_makes_each_figure_on_the_command_line(run, tmp_path, figure):
    done = run("reproduce", "bbr-tuning", figure, "--quick", "--json", "--out", tmp_path)
    found = json.loads(done.stdout)
    assert [claim["id"] for claim in found["claims"]][:2] == FIRST_CLAIMS[figure]
    assert (tmp_path / f"{figure}.svg").read_text().startswith("<svg")


def test_quick_simulated_runs_are_whole():
    """In figure 4 the fifth flow joins after 20 s, and in figure 2a the step comes after 11 s."""
    lab = lab_of(paper("bbr-tuning"), "sim", quick=True)
    for name in ("fig2a", "fig4"):
        figure = {figure.name: figure for figure in paper("bbr-tuning").figures}[name]
        for one in next(figure.make(lab)):
            assert one.seconds == one.scenario.seconds > 20
            assert len(one.seeds) == 2
