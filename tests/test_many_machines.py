"""`--ray`: what goes to other machines, what comes back, and what is refused. Ray itself is a fake here."""

import json
import signal
import sys
from dataclasses import replace

import pytest

import headway
from fake_ray import FakeRay, RayError, RayTaskError
from headway._native import RunError, Scenario, Trace, UsageError
from headway.runs import many_machines, sent
from headway.runs.many_machines import RETRIES, connected

pytestmark = pytest.mark.filterwarnings("ignore:Intervals from fewer than 10 runs")

SCHEMES, SCENARIOS = ["cubic", "owl"], ["pantheon-default", "rax-1"]
FILES = ("results.parquet", "series.parquet", "bench.json", "report.html")
FIG8 = ("rax", "fig8")
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
    assert len(ray.cancelled) == 1
    assert {row["scheme"] for row in headway.load(tmp_path).runs()} < {*SCHEMES} or len(ray.sent) < 4
    bench(tmp_path, ray="auto")
    must_be_equal(here, tmp_path)


def test_a_lost_worker_loses_only_its_runs(ray, here, tmp_path):
    def lost_once(_):
        ray.around = lambda carry_out: carry_out()
        raise RayError("the worker died\nand more")

    ray.around = lost_once
    with pytest.raises(headway.Error, match=r"its worker was lost, 6 times in a row: the worker died;") as why:
        bench(tmp_path, ray="auto")
    assert "\n" not in str(why.value)
    assert len(ray.sent) == 4
    assert len({(row["scenario"], row["scheme"]) for row in why.value.results.runs()}) == 3
    bench(tmp_path, ray="auto")
    must_be_equal(here, tmp_path)


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
