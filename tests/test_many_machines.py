"""`--ray`: what goes to other machines, what comes back, and what is refused. Ray itself is a fake here."""

import json
import re
import signal
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import typer

import headway
from fake_ray import FakeRay, RayError, RaySystemError, RayTaskError, WorkerCrashedError
from headway import ending
from headway._native import RunError, Scenario, Trace, UsageError
from headway.benches import spread
from headway.cli import train as cli
from headway.runs import many_machines, sent
from headway.runs.many_machines import RETRIES, connected
from headway.train import run as trainings
from headway.train import spread as trainings_spread

pytestmark = pytest.mark.filterwarnings("ignore:Intervals from fewer than 10 runs")

SCHEMES, SCENARIOS = ["cubic", "owl"], ["pantheon-default", "rax-1"]
FILES = ("results.parquet", "series.parquet", "bench.json", "report.html")
PAIRS = [(scenario, scheme) for scenario in SCENARIOS for scheme in SCHEMES]
FIG8 = ("rax", "fig8")
FAILS = """
class Fails:
    cwnd = 1

    def __init__(self, setup):
        pass

    def on_feedback(self, f):
        raise ValueError("no window today")
"""
NOT_OF_THE_RUN = ("at", "machine", "took_s")


@pytest.fixture(autouse=True)
def undrawn(monkeypatch):
    """No test here looks at a picture."""
    monkeypatch.setattr("headway.report.svg._drawn", lambda _: b"<svg></svg>")


@pytest.fixture
def ray(monkeypatch):
    """A cluster of two machines, of two cores and of one."""
    fake = FakeRay(2, 1)
    monkeypatch.setitem(sys.modules, "ray", fake)
    return fake


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


def must_be_equal(one, other):
    for name in FILES:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def times_two(number):
    return 2 * number


def fails(number):
    raise RunError(f"run {number} failed")


def breaks(number):
    raise ZeroDivisionError(f"in\ntask {number}")


def all_of(running):
    found = {}
    while not running.is_done:
        found.update(running.wait())
    return found


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


def test_lost_workers_are_replaced_and_errors_are_not_tried_again(ray):
    with connected("auto") as machines, machines.running(times_two, [1]) as running:
        assert all_of(running) == {1: 2}
    assert ray.sent == [{"num_cpus": 1, "max_retries": RETRIES, "retry_exceptions": False}]
    assert RETRIES >= 3


def test_few_tasks_take_several_cores_of_one_machine(ray, tmp_path):
    ray.node_cores = (8, 4)
    headway.bench(SCHEMES, SCENARIOS[:1], runs=3, seconds=1, out=tmp_path, ray="auto")
    # Twelve cores and two tasks; but no task has more runs than three.
    assert [options["num_cpus"] for options in ray.sent] == [3, 3]


def test_no_task_takes_more_cores_than_the_smallest_machine_has(ray, tmp_path):
    headway.bench(SCHEMES[:1], SCENARIOS[:1], runs=3, seconds=1, out=tmp_path, ray="auto")
    assert [options["num_cpus"] for options in ray.sent] == [1]


@pytest.mark.parametrize(("jobs", "most"), [(None, 6), (2, 2)])
def test_few_tasks_are_under_way_at_a_time(ray, jobs, most):
    with connected("auto") as machines, machines.running(times_two, range(50), jobs) as running:
        assert all_of(running) == {number: 2 * number for number in range(50)}
    assert ray.most == most


def test_a_bench_goes_on_from_what_is_there(ray, here, tmp_path):
    """Of one scheme two of three runs are there: the third runs on this machine."""
    headway.bench(SCHEMES[:1], SCENARIOS, runs=2, seconds=5, out=tmp_path)
    bench(tmp_path, ray="auto")
    assert len(ray.sent) == 2
    must_be_equal(here, tmp_path)


def test_an_interrupted_bench_keeps_what_has_come_back(ray, here, tmp_path):
    class EnoughError(Exception):
        pass

    def stop(finished, _):
        raise EnoughError(finished)

    with pytest.raises(EnoughError):
        bench(tmp_path, ray="auto", jobs=2, progress=stop)
    # Two were sent, and the second one came back first.
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


def test_what_ray_gives_up_for_another_reason_is_not_called_lost(ray):
    def no_disk(_):
        raise RayError("no disk\nand more")

    ray.around = no_disk
    with connected("auto") as machines, machines.running(times_two, [1]) as running:
        (error,) = all_of(running).values()
    assert str(error) == "Ray has given it up: no disk"


def test_a_failed_pair_does_not_stop_the_runs_of_this_machine(ray, here, tmp_path):
    """Of one scheme two of three runs are there, and the worker of another is lost."""
    headway.bench(SCHEMES[:1], SCENARIOS[:1], runs=2, seconds=5, out=tmp_path)

    def lost_once(_):
        ray.around = lambda carry_out: carry_out()
        raise WorkerCrashedError("the worker died")

    ray.around = lost_once
    bench(tmp_path, ray="auto")
    assert len(ray.sent) == 3
    must_be_equal(here, tmp_path)


def test_the_first_failure_is_told_after_the_runs_of_this_machine(ray, tmp_path):
    """Of one scheme two of three runs are there, and each run of the other fails."""
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
def test_what_cannot_be_taken_over_ends_as_a_failed_run(here, tmp_path, monkeypatch):
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


def test_what_came_back_is_kept_when_the_head_is_lost(ray, here, tmp_path):
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


def test_results_are_given_before_an_error_that_came_with_them(ray):
    def lost(carry_out):
        if not ray.answers:
            raise RaySystemError("the head is gone")
        return carry_out()

    ray.around, ray.at_once = lost, 3
    with connected("auto") as machines, machines.running(times_two, range(3)) as running:
        assert running.wait() == [(0, 0), (1, 2)]
        assert not running.is_done
        with pytest.raises(RunError, match=r"^--ray auto: Ray fails: the head is gone$"):
            running.wait()
        assert running.is_done


def test_a_cluster_that_fails_is_one_line(ray):
    with connected("auto") as machines, machines.running(times_two, range(3)) as running:
        ray.fails = RaySystemError("the head is gone\nand more")
        with pytest.raises(RunError, match=r"^--ray auto: Ray fails: the head is gone$"):
            running.wait()


def store_of(folder):
    """The runs of a store, without when, where and how long."""
    runs = map(json.loads, (folder / "runs.jsonl").read_text().splitlines())
    return sorted(json.dumps({k: v for k, v in run.items() if k not in NOT_OF_THE_RUN}) for run in runs)


def test_a_figure_on_a_cluster_has_the_same_runs(ray, tmp_path):
    one, many = tmp_path / "one", tmp_path / "many"
    alone = headway.reproduce(*FIG8, quick=True, out=one)
    made = headway.reproduce(*FIG8, quick=True, out=many, ray="auto")
    assert alone.results == made.results
    assert store_of(one) == store_of(many)
    assert len(ray.sent) == len(store_of(many)) > 0
    for name in ("claims.json", "fig8.json", "fig8.svg"):
        assert (one / name).read_bytes() == (many / name).read_bytes(), name


def test_an_interrupted_figure_goes_on(ray, tmp_path):
    def lost_third(carry_out):
        if len(ray.answers) == 2:
            raise KeyboardInterrupt
        return carry_out()

    ray.around = lost_third
    with pytest.raises(headway.Interrupted, match="2 of 24 runs finished"):
        headway.reproduce(*FIG8, quick=True, out=tmp_path, ray="auto")
    assert len(store_of(tmp_path)) == 2
    assert len(ray.cancelled) + 2 == len(ray.sent)
    before = len(ray.sent)
    ray.around = lambda carry_out: carry_out()
    headway.reproduce(*FIG8, quick=True, out=tmp_path, ray="auto")
    assert len(ray.sent) - before == 22


def test_every_scenario_that_headway_brings_can_be_sent():
    count = 0
    for listed in headway.list_scenarios():
        for one in Scenario.load_all(listed["name"]):
            # Recorded traces may not be on this machine.
            if all(Trace.find(name) for name in one.traces):
                there = sent.sent_scenario(one).load()
                assert (there.name, there.hash, there.traces) == (one.name, one.hash, one.traces)
                count += 1
    assert count > 50


def test_a_scenario_of_a_file_is_sent_unless_its_trace_lies_beside_it(tmp_path):
    trace = tmp_path / "mine.down"
    trace.write_text("1\n2\n5\n")
    text = Scenario.load("synthetic-att").text
    own = tmp_path / "own.toml"
    own.write_text(text.replace("synthetic-att.down", str(trace)))
    there = sent.sent_scenario(Scenario.load(str(own))).load()
    assert there.traces == Scenario.load(str(own)).traces
    assert str(trace) in there.traces
    own.write_text(text.replace("synthetic-att.down", "./mine.down"))
    why = r"--ray: scenario synthetic-att names a trace from its own folder, \S+mine\.down; .* absolute paths in it"
    with pytest.raises(UsageError, match=why):
        sent.sent_scenario(Scenario.load(str(own)))


def test_a_machine_with_another_trace_refuses():
    known = sent.sent_scenario(Scenario.load("synthetic-att"))
    other = replace(known, traces_sha256=("0" * 64, *known.traces_sha256[1:]))
    with pytest.raises(UsageError, match=r"trace synthetic-att\.\w+ has SHA-256 \w+, not 0{64}; put the same file"):
        other.load()


def test_a_machine_with_another_model_refuses():
    spec = "owl"
    meaning = sent.canonical(spec, "sim")
    assert sent.checked_spec(spec, meaning, "sim") == spec
    why = r"scheme owl is \S+ there, not owl:model=other@1; put the same files there"
    with pytest.raises(UsageError, match=why):
        sent.checked_spec(spec, "owl:model=other@1", "sim")


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("code_version", "0.0.0+other", r"headway 0\.0\.0\+other, not headway .*"),
        ("platform.python_version", lambda: "3.9.9", r"Python 3\.9\.9, not Python 3.*"),
    ],
)
def test_a_machine_with_other_code_refuses(ray, monkeypatch, tmp_path, name, value, why):
    def elsewhere(carry_out):
        with monkeypatch.context() as there:
            there.setattr(f"headway.runs.many_machines.{name}", value)
            return carry_out()

    why = f"it has {why}; install the same there"
    ray.around = elsewhere
    with pytest.raises(headway.Error, match=rf"^ray auto: machine \S+: {why}; 0 of 12 runs finished$") as refused:
        bench(tmp_path, ray="auto")
    assert "\n" not in str(refused.value)
    with pytest.raises(headway.Error, match=rf"^ray auto: machine \S+: {why}$"):
        headway.reproduce(*FIG8, quick=True, out=tmp_path / "figure", ray="auto")


def test_a_machine_without_headway_is_named_in_one_line(ray, tmp_path):
    def cannot_import(_):
        raise RayTaskError("Traceback:\n  File\nModuleNotFoundError: No module named 'headway'")

    ray.around = cannot_import
    cure = "install this version of Headway for the Python of every machine"
    with pytest.raises(headway.Error, match=f"a worker cannot begin: .*No module named 'headway'; {cure}"):
        headway.reproduce(*FIG8, quick=True, out=tmp_path, ray="auto")


@pytest.mark.parametrize(
    ("work", "why"), [(fails, "run 7 failed"), (breaks, "ZeroDivisionError: in task 7")], ids=["known", "unknown"]
)
def test_an_error_of_a_task_is_its_result(ray, work, why):
    with connected("auto") as machines, machines.running(work, [7]) as running:
        (error,) = all_of(running).values()
    assert isinstance(error, RunError)
    assert str(error) == why
    assert len(ray.sent) == 1


def test_without_ray_a_line_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    why = r"^the package 'ray' is missing; install it: pip install '\.\[ray\]' in the folder of Headway's sources$"
    with pytest.raises(headway.Error, match=why):
        bench(tmp_path, ray="auto")


def test_a_cluster_that_is_not_there_is_one_line(ray, tmp_path):
    ray.refuses = ConnectionError("Could not find any running Ray instance. Please specify\nthe one")
    why = "^ray auto: Could not find any running Ray instance; give auto on a machine of a cluster .* or local$"
    with pytest.raises(headway.Error, match=why):
        bench(tmp_path, ray="auto")


def test_a_cluster_that_refuses_says_what_to_compare(ray, tmp_path):
    """Ray says no more of a token that is missing or another."""
    ray.refuses = ConnectionError("Failed to connect to Ray cluster at 10.0.0.1:6379. \nHere is a traceback")
    cure = r"see that its head runs, and that RAY_AUTH_MODE and ~/\.ray/auth_token are the same here"
    why = rf"^ray auto: Failed to connect to Ray cluster at 10\.0\.0\.1:6379; {cure}$"
    with pytest.raises(headway.Error, match=why):
        bench(tmp_path, ray="auto")


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("127.0.0.1:1", r"\[Errno 111\] Connection refused"),
        ("127.0.0.1:x", "invalid literal for int.*"),
    ],
)
def test_a_head_that_does_not_answer_is_refused_at_once(ray, address, why):
    """Ray tries for four minutes."""
    with pytest.raises(UsageError, match=rf"^--ray {address}: {why}; give auto on a machine"), connected(address):
        pass
    assert ray.inits == []


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"ray": "ray://head:10001"}, "^ray ray://head:10001: Ray Client is not served; run the command"),
        ({"world": "emu"}, "^ray: runs of world emu test the kernel of this machine; leave it out$"),
        ({"pcap": True}, "^pcap: recordings are written on this machine only; leave out ray$"),
        ({"logs": True}, "^logs: recordings are written on this machine only; leave out ray$"),
    ],
)
def test_what_cannot_go_to_other_machines_is_refused(ray, tmp_path, options, why):
    with pytest.raises(headway.Error, match=why):
        bench(tmp_path, **({"ray": "auto"} | options))
    assert ray.inits == []


@pytest.mark.parametrize(
    ("figure", "options", "why"),
    [
        ("fig8", {"logs": True}, "^logs: packet logs are written on this machine only; leave out ray$"),
        ("all", {"world": "kernel"}, "^ray: runs of world kernel stay on this machine, whose kernel they test;"),
    ],
)
def test_what_of_figures_cannot_go_to_other_machines_is_refused(ray, tmp_path, figure, options, why):
    with pytest.raises(headway.Error, match=why):
        headway.reproduce("rax", figure, quick=True, out=tmp_path, ray="auto", **options)
    assert ray.inits == []


def test_a_cluster_with_another_token_says_what_to_copy(ray, tmp_path):
    ray.refuses = RayError("Invalid token. Ensure that\nthe token")
    why = (
        "^ray auto: Invalid token; set RAY_AUTH_MODE=token, and copy the token of the cluster to ~/.ray/auth_token$"
    )
    with pytest.raises(headway.Error, match=why):
        bench(tmp_path, ray="auto")


@pytest.mark.usefixtures("ray")
def test_signals_stay_ours():
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with connected("auto"):
            assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_connection_of_the_callers_is_used_and_stays(ray):
    ray.is_up = True
    with connected("auto") as machines, machines.running(times_two, [1]) as running:
        all_of(running)
    assert (ray.inits, ray.is_up) == ([], True)


def test_what_ray_tells_of_workers_is_one_line_on_standard_error(capsys):
    many_machines._tell(
        {
            "lines": ["A worker died or was killed.\nTo troubleshoot the problem, check the logs: 1.", "x"],
            "pid": "raylet",
            "is_err": False,
        },
        ignore_prefix=False,
    )
    found = capsys.readouterr()
    assert (found.out, found.err) == ("", "headway: Ray: A worker died or was killed\n")


TRAININGS = [(SimpleNamespace(model="quick", algorithm=SimpleNamespace(threads=1)), seed) for seed in (1, 2, 3)]


@pytest.fixture
def trained(monkeypatch):
    """Trainings take no time, and need no PyTorch. Gives the seeds in the order in which they were trained."""
    seeds = []

    def train_one(chosen, where, seed, _):
        seeds.append(seed)
        return trainings.Trained(where, chosen.model, seed, 1, 1, 0.5, [], [], 1.0, 1.0, {}, "rax-1")

    monkeypatch.setattr(trainings, "train_one", train_one)
    monkeypatch.setattr(trainings_spread, "needs_of", lambda *_: {"trace a.up": "1"})
    monkeypatch.setattr(many_machines, "version", lambda _: "1.0")
    return seeds


def test_trainings_on_a_cluster_are_told_in_the_order_planned(ray, trained, tmp_path, capsys):
    cli._train_each(TRAININGS, tmp_path, json=True, ray="auto")
    out, err = capsys.readouterr()
    assert trained == [3, 2, 1]
    assert [one["seed"] for one in json.loads(out)["trainings"]] == [1, 2, 3]
    folders = [f"model={tmp_path}/quick-seed-{seed}" for seed in (1, 2, 3)]
    assert json.loads(out)["scheme"] == ":".join(["learned", *folders])
    assert "headway: 3 trainings on 3 cores; each goes on from its last checkpoint in" in err
    assert "headway: quick, seed 3: 1 of 3\nheadway: quick, seed 2: 2 of 3\n" in err
    assert [options["num_cpus"] for options in ray.sent] == [1, 1, 1]
    assert [*tmp_path.iterdir()] == []


def test_a_machine_with_another_folder_trains_nothing(ray, trained, tmp_path):
    def elsewhere(carry_out):
        (mark,) = tmp_path.glob(".headway-ray-*")
        moved = mark.rename(tmp_path / "moved")
        try:
            return carry_out()
        finally:
            moved.rename(mark)

    ray.around = elsewhere
    cure = "give a folder that all machines share, under the same path"
    why = rf"^--ray auto: machine \S+: --out {re.escape(str(tmp_path))} is another folder there; {cure}$"
    with pytest.raises(UsageError, match=why):
        cli._train_each(TRAININGS, tmp_path, json=False, ray="auto")
    assert trained == []


@pytest.mark.parametrize(
    ("module", "name", "value", "why"),
    [
        (trainings_spread, "needs_of", {"trace a.up": "2"}, "it has trace a.up 2, not 1; put the same there"),
        (many_machines, "version", "2.0", "it has numpy 2.0, not numpy 1.0; install the same there"),
    ],
)
def test_a_machine_that_would_train_other_weights_is_refused(
    ray, trained, monkeypatch, tmp_path, module, name, value, why
):
    def elsewhere(carry_out):
        with monkeypatch.context() as there:
            there.setattr(module, name, lambda *_: value)
            return carry_out()

    ray.around = elsewhere
    with pytest.raises(UsageError, match=rf"^--ray auto: machine \S+: {re.escape(why)}$"):
        cli._train_each(TRAININGS, tmp_path, json=False, ray="auto")
    assert trained == []
    assert len(ray.cancelled) == 2


@pytest.mark.usefixtures("ray")
def test_a_failed_training_on_a_cluster_does_not_end_the_others(trained, monkeypatch, tmp_path, capsys):
    train_one = trainings.train_one

    def fails_once(chosen, where, seed, watching):
        if seed == 2:
            raise RunError("the weights are not finite")
        return train_one(chosen, where, seed, watching)

    monkeypatch.setattr(trainings, "train_one", fails_once)
    why = f"1 of 3 trainings failed: quick, seed 2; the models of the others are in {tmp_path}"
    with pytest.raises(RunError, match=f"^{re.escape(why)}$"):
        cli._train_each(TRAININGS, tmp_path, json=False, ray="auto")
    assert trained == [3, 1]
    out, err = capsys.readouterr()
    assert f"learned:model={tmp_path}/quick-seed-1:model={tmp_path}/quick-seed-3" in out
    assert "headway: quick, seed 2: the weights are not finite\n" in err


def test_a_signal_gives_up_the_trainings_of_a_cluster(ray, trained, monkeypatch, tmp_path, capsys):
    def asked(carry_out):
        if ray.answers:
            raise KeyboardInterrupt
        return carry_out()

    ray.around = asked
    monkeypatch.setattr(ending, "ignore", lambda: None)
    with pytest.raises(typer.Exit):
        cli._train_each(TRAININGS, tmp_path, json=False, ray="auto")
    assert trained == [3]
    assert ray.cancelled == [0, 1]
    what = f"1 of 3 trainings are finished; the same command goes on from the last checkpoints in {tmp_path}"
    assert capsys.readouterr().err.endswith(f"headway: interrupted; {what}\n")
