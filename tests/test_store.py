"""The file of finished runs, on a disk that becomes full."""

import json
import resource
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from headway._native import RunError, Scenario, UsageError
from headway.files import alone_in
from headway.runs.store import NAME, Store


class Task:
    """A task of one run, identified by its seed."""

    world = "sim"
    grid_ms = None
    scenario = SimpleNamespace(traces=[])

    def __init__(self, seed):
        self.key = {"world": "sim", "scenario_hash": "0", "scheme": "cubic", "seed": seed}
        self.key |= {"seconds": 1.0, "warmup": 0.0, "transport": "simple"}


RESULTS = [{"flow": -1, "remark": "x" * 1000}]


@contextmanager
def no_file_longer_than(size):
    """Limits files to this size, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_run_cut_off_by_a_full_disk_does_not_damage_others(tmp_path):
    path = tmp_path / NAME
    store = Store(tmp_path)
    store.add(Task(1), RESULTS)
    whole = path.read_bytes()
    with (
        no_file_longer_than(len(whole) + 100),
        pytest.raises(RunError, match=r"File too large; this run is not kept, those before it are"),
    ):
        store.add(Task(2), RESULTS)
    assert path.read_bytes() == whole
    # There is room again.
    store.add(Task(3), RESULTS)
    store.close()
    assert [json.loads(line)["seed"] for line in path.read_text().splitlines()] == [1, 3]


def test_closing_a_store_on_a_full_disk_raises_no_second_error(tmp_path):
    store = Store(tmp_path)
    with no_file_longer_than(100):
        with pytest.raises(RunError):
            store.add(Task(1), RESULTS)
        store.close()
    # A new empty file is removed with its store.
    assert not (tmp_path / NAME).exists()


def test_a_folder_used_by_a_running_bench_is_refused(tmp_path):
    with alone_in(tmp_path), pytest.raises(UsageError, match="another headway command is at work there"):
        Store(tmp_path)
    Store(tmp_path).close()


@pytest.mark.parametrize(("name", "writes"), [("gap.json", "gap.json"), ("fig7-delay.csv", "fig7-*.csv")])
def test_output_files_without_a_store_of_runs_are_not_overwritten(tmp_path, name, writes):
    (tmp_path / name).write_text("mine")
    with pytest.raises(UsageError, match=rf"holds {name} without its runs\.jsonl; give another folder"):
        Store(tmp_path, [writes])
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_run_over_another_trace_does_not_count(tmp_path, monkeypatch):
    """Two folders have the same scenario, which names a trace in the same folder.

    The traces differ.
    """

    def task(folder, packets):
        folder.mkdir()
        (folder / "own.down").write_text("1\n" * packets)
        scenario = folder / "s.toml"
        scenario.write_text('schema = 1\nname = "s"\nseconds = 5\n[bottleneck]\ntrace = "own.down"\n')
        one = Task(1)
        one.scenario, one.spec = Scenario.load(str(scenario)), "cubic"
        return one

    fast, slow = task(tmp_path / "fast", 12), task(tmp_path / "slow", 1)
    assert fast.scenario.hash == slow.scenario.hash
    monkeypatch.setattr("headway.runs.store._is_of_this_code", lambda _: True)
    store = Store(tmp_path)
    store.add(fast, [{"flow": -1}])
    assert store.find(fast)
    assert store.find(slow) is None


OWN = {"store_schema": 1, "world": "sim", "scenario_hash": "0", "scheme": "cubic", "seed": 1}
OWN |= {"seconds": 1.0, "warmup": 0.0, "transport": "simple"}
LINE = json.dumps(OWN)


@pytest.mark.parametrize(
    ("content", "number"),
    [
        ('{"image": "a.png"}', 1),
        ('{"image": "a.png"}\n{"image": "b.png"}', 1),
        (f"{LINE}\nnotes of mine", 2),
        (f'{LINE}\n{{"store_schema": 1, "seed": 1}}\n', 2),
        (f'{LINE}\n{{"store_schema": 1, "wor\n{LINE}\n', 2),
        (LINE.replace('"cubic"', '["cubic"]'), 1),
        ("\x00" * 20, 1),
    ],
)
def test_a_file_with_lines_that_are_not_runs_is_refused_and_kept(tmp_path, content, number):
    (tmp_path / NAME).write_text(content)
    with pytest.raises(UsageError, match=rf"{NAME}:{number}: not a run; delete the line, or give another"):
        Store(tmp_path)
    assert (tmp_path / NAME).read_text() == content


@pytest.mark.parametrize(("last", "is_kept"), [(LINE, True), (LINE[:-1], False), ('{"stor', False)])
def test_a_complete_last_run_without_a_newline_is_kept(tmp_path, last, is_kept):
    first = LINE.replace('"seed": 1', '"seed": 2')
    (tmp_path / NAME).write_text(f"{first}\n{last}")
    Store(tmp_path).close()
    assert (tmp_path / NAME).read_text() == f"{first}\n" + is_kept * f"{last}\n"
