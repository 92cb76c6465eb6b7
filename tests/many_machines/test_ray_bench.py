"""Tests of `headway bench --ray`.

It writes the same files as on one machine, and keeps finished runs after a failure.
"""

import json

import pytest

import headway
from fake_ray import RaySystemError, WorkerCrashedError
from headway.benches import spread
from same_results import must_be_equal

pytestmark = pytest.mark.filterwarnings("ignore:Intervals from fewer than 10 runs")

SCHEMES, SCENARIOS = ["cubic", "owl"], ["pantheon-default", "rax-1"]
PAIRS = [(scenario, scheme) for scenario in SCENARIOS for scheme in SCHEMES]
FAILS = """
class Fails:
    cwnd = 1

    def __init__(self, setup):
        pass

    def on_feedback(self, f):
        raise ValueError("no window today")
"""


def bench(folder, **options):
    return headway.bench(SCHEMES, SCENARIOS, runs=3, seconds=5, out=folder, **options)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """The folder of the same bench without a cluster."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headway.report.svg._drawn", lambda _: b"<svg></svg>")
        folder = tmp_path_factory.mktemp("bench")
        bench(folder)
    return folder


def pair_of(task):
    return task.sent.name, task.spec


def pairs_in(results):
    return {(row["scenario"], row["scheme"]) for row in results.runs()}


def test_a_bench_on_a_cluster_leaves_the_same_files(ray, here, tmp_path):
    told = []
    bench(tmp_path, ray="auto", progress=lambda *of: told.append(of))
    must_be_equal(here, tmp_path)
    runs = json.loads((here / "bench.json").read_text())["total_runs"]
    # Each scheme on each scenario is a task.
    assert len(ray.sent) == 4
    assert len(told) == 4
    assert told[-1] == (runs, runs)
    assert not ray.is_up


def test_few_tasks_take_several_cores_of_one_machine(ray, tmp_path):
    ray.node_cores = (8, 4)
    headway.bench(SCHEMES, SCENARIOS[:1], runs=3, seconds=1, out=tmp_path, ray="auto")
    # The cluster has twelve cores, and there are two tasks. But no task has more than three runs.
    assert [options["num_cpus"] for options in ray.sent] == [3, 3]


def test_no_task_takes_more_cores_than_the_smallest_machine_has(ray, tmp_path):
    headway.bench(SCHEMES[:1], SCENARIOS[:1], runs=3, seconds=1, out=tmp_path, ray="auto")
    assert [options["num_cpus"] for options in ray.sent] == [1]


def test_a_bench_continues_from_finished_runs(ray, here, tmp_path):
    """Two of three runs of one scheme exist. The third runs on this machine."""
    headway.bench(SCHEMES[:1], SCENARIOS, runs=2, seconds=5, out=tmp_path)
    bench(tmp_path, ray="auto")
    assert len(ray.sent) == 2
    must_be_equal(here, tmp_path)


def test_an_interrupted_bench_keeps_returned_runs(ray, here, tmp_path):
    class EnoughError(Exception):
        pass

    def stop(finished, _):
        raise EnoughError(finished)

    with pytest.raises(EnoughError):
        bench(tmp_path, ray="auto", jobs=2, progress=stop)
    # Two tasks were sent, and the second one returned first.
    first, second, *others = PAIRS
    assert [pair_of(task) for task in ray.tasks] == [first, second]
    assert ray.cancelled == [0]
    assert pairs_in(headway.load(tmp_path)) == {second}
    bench(tmp_path, ray="auto")
    assert [pair_of(task) for task in ray.tasks[2:]] == [first, *others]
    must_be_equal(here, tmp_path)


def test_a_lost_worker_loses_only_its_runs(ray, here, tmp_path):
    def lost_once(_):
        ray.around = lambda carry_out: carry_out()
        raise WorkerCrashedError("the worker died\nand more")

    ray.around = lost_once
    with pytest.raises(headway.Error, match=r"its worker was lost, 6 times in a row: the worker died;") as why:
        bench(tmp_path, ray="auto")
    assert "\n" not in str(why.value)
    assert len(ray.sent) == 4
    assert len(pairs_in(why.value.results)) == 3
    bench(tmp_path, ray="auto")
    must_be_equal(here, tmp_path)


def test_a_failed_pair_does_not_stop_the_local_runs(ray, here, tmp_path):
    """Two of three runs of one scheme exist, and the worker of another scheme is lost."""
    headway.bench(SCHEMES[:1], SCENARIOS[:1], runs=2, seconds=5, out=tmp_path)

    def lost_once(_):
        ray.around = lambda carry_out: carry_out()
        raise WorkerCrashedError("the worker died")

    ray.around = lost_once
    bench(tmp_path, ray="auto")
    assert len(ray.sent) == 3
    must_be_equal(here, tmp_path)


def test_the_first_failure_is_reported_after_the_local_runs(ray, tmp_path):
    """Two of three runs of one scheme exist, and each run of the other scheme fails."""
    out, controller = tmp_path / "out", tmp_path / "fails.py"
    controller.write_text(FAILS)
    headway.bench(SCHEMES[:1], SCENARIOS[:1], runs=2, seconds=5, out=out)
    schemes = [SCHEMES[0], f"python:{controller}"]
    with pytest.raises(headway.Error, match="no window today") as why:
        headway.bench(schemes, SCENARIOS[:1], runs=3, seconds=5, out=out, ray="auto")
    assert len(ray.sent) == 1
    assert {(row["scheme"], row["run"]) for row in why.value.results.runs()} == {
        (SCHEMES[0], run) for run in range(3)
    }


@pytest.mark.usefixtures("ray")
def test_a_result_that_cannot_be_stored_is_a_failed_run(here, tmp_path, monkeypatch):
    take_over = spread.Spread._take_over

    def full_once(*_):
        monkeypatch.setattr(spread.Spread, "_take_over", take_over)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spread.Spread, "_take_over", full_once)
    with pytest.raises(headway.Error, match=r"rax-1, owl: .*No space left on device") as why:
        bench(tmp_path, ray="auto")
    assert pairs_in(why.value.results) == {*PAIRS[:3]}
    bench(tmp_path, ray="auto")
    must_be_equal(here, tmp_path)


def test_returned_runs_are_kept_when_the_head_node_is_lost(ray, here, tmp_path):
    def lose_head(carry_out):
        if len(ray.answers) == 2:
            raise RaySystemError("the head is gone\nand more")
        return carry_out()

    ray.around = lose_head
    with pytest.raises(
        headway.Error, match=r"^ray auto: Ray fails: the head is gone; 6 of 12 runs finished;"
    ) as why:
        bench(tmp_path, ray="auto")
    assert len(pairs_in(why.value.results)) == 2
    ray.around = lambda carry_out: carry_out()
    bench(tmp_path, ray="auto")
    must_be_equal(here, tmp_path)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"ray": "ray://head:10001"}, "^ray ray://head:10001: Ray Client is not supported; run the command"),
        ({"world": "emu"}, "^ray: runs of world emu test the kernel of this machine; leave it out$"),
        ({"pcap": True}, "^pcap: recordings are written on this machine only; leave out ray$"),
        ({"logs": True}, "^logs: recordings are written on this machine only; leave out ray$"),
    ],
)
def test_schemes_that_cannot_be_sent_to_other_machines_are_refused(ray, tmp_path, options, why):
    with pytest.raises(headway.Error, match=why):
        bench(tmp_path, **({"ray": "auto"} | options))
    assert ray.inits == []
