"""The difference of real packets from the simulator.

It is read from the store of `headway gap`, which is made up here.
"""

from pathlib import Path

import pytest

from gap_rows import finished
from headway._native import Scenario, canonical_scheme
from headway.gap.plan import EMU, KERNEL, SIM, Settings, Task, seeds
from headway.reproduce import paper
from headway.reproduce.engine import Outcome, begin, make
from headway.reproduce.interval import gap
from headway.reproduce.lab import Lab
from headway.reproduce.publish import publish
from headway.runs import store
from headway.runs.task import model_of

INTERVAL = paper("interval")
(FIGURE,) = (figure for figure in INTERVAL.figures if figure.name == "gap")
# The third network follows a recorded trace, which may not be here.
STEADY = ("pantheon-default", "low-bdp")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    (tmp_path / gap.KEPT).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(store, "headwayd", lambda: "this")
    monkeypatch.setattr(gap, "GAP_NETWORKS", STEADY)


def keep(networks=STEADY, worlds=(SIM, EMU, KERNEL), seconds=gap.SECONDS, warmup=0.0, **more):
    """Stores two runs of both agents.

    They have 10 Mbit/s in the simulator, 11 in the emulator, 9 in the kernel.
    """
    kept = store.Store(gap.KEPT)
    for network in networks:
        scenario = Scenario.load(network)
        for world in worlds:
            for agent in gap.AGENTS:
                for seed in seeds(Settings(runs=2)):
                    task = Task(world, scenario, agent, seed, seconds, warmup)
                    rate = {SIM: 10.0, EMU: 11.0, KERNEL: 9.0}[world]
                    run = {"scenario": scenario.name, "model": model_of(agent, world)}
                    kept.add(task, [finished(task, rate, **(run | more))])
    kept.close()


def outcome():
    (begun,) = begin([FIGURE], Lab())
    if isinstance(begun, Outcome):
        return begun
    kept = store.Store(Path())
    try:
        return make(begun, kept, 1, lambda *_: None)
    finally:
        kept.close()


def missing():
    found = outcome()
    assert found.drawn is None
    assert "\n" not in found.missing
    return found.missing


def test_both_agents_are_compared_with_the_simulator_in_both_worlds():
    keep()
    made = outcome()
    rows = [row[:7] for row in made.drawn.tables[gap.TABLE][1:]]
    worlds = [("emulator", "10.0", "none"), ("kernel", "-10.00", "none")]
    assert rows == [
        [network, agent, world, "2", "10.0", percent, ends]
        for network in STEADY
        for agent in ("interval (K)", "interval-learned")
        for world, percent, ends in worlds
    ]
    assert canonical_scheme("interval", SIM) == canonical_scheme("interval:rtt=jk:n=2", SIM), "which is K"
    command = "headway gap --schemes interval,interval-learned --scenario pantheon-default,low-bdp,cellular-walking"
    assert made.notes[0] == f"`{command} --seconds 30`."
    assert "8 emulated runs and 8 in the kernel, none of them unfit" in made.notes[1]
    assert made.runs == 0


def test_the_notes_of_the_gap_name_guard_trips_and_unfit_runs():
    keep()
    keep(["low-bdp"], [KERNEL], guard_trips=3)
    keep(["low-bdp"], [EMU], code_version="0.0.9")
    kept = store.Store(gap.KEPT)
    task = Task(EMU, Scenario.load("low-bdp"), "interval", 1, gap.SECONDS, 0.0)
    kept.add(task, [finished(task, model=model_of("interval", EMU), unfit="it stood still")])
    kept.close()
    made = outcome()
    notes = " ".join(made.notes)
    example = "An example of an unfit run: it stood still."
    for word in ("1 of them unfit", example, f", {store.machine()}, Headway 0.0.9, "):
        assert word in notes
    assert "In the kernel, low-bdp, interval (K): the fallback took over 6 times, in 2 of 2 runs" in notes
    assert ["low-bdp", "interval (K)", "emulator", "1, 1 unfit"] in [
        row[:4] for row in made.drawn.tables[gap.TABLE]
    ]


def test_only_runs_of_the_command_count(tmp_path):
    keep()
    whole = outcome().drawn.tables
    mine = tmp_path / "mine.toml"
    mine.write_text('schema = 1\nname = "low-bdp"\nseconds = 4\n[bottleneck]\nrate = "12Mbps"\ndelay = "9ms"\n')
    keep([str(mine), "high-bdp"])
    mine.unlink()
    keep(seconds=5.0)
    keep(warmup=1.0)
    assert outcome().drawn.tables == whole


def test_an_incomplete_gap_is_reported_as_missing():
    makes = f"`{gap.COMMAND}` makes them"
    assert missing() == f"no pairs of runs of interval on pantheon-default in the emulator and 7 more: {makes}"
    keep(worlds=[SIM, EMU])
    assert missing() == f"no pairs of runs of interval on pantheon-default in the kernel and 3 more: {makes}"
    keep(worlds=[KERNEL], model="interval-v1@0123456789ab")
    assert "3 more" in missing()
    keep(["pantheon-default"], [KERNEL])
    keep(["low-bdp"], [KERNEL], unfit="late")
    assert missing().startswith("no pairs of runs of interval on low-bdp in the kernel and 1 more: ")
    assert "--seconds 30 --again`" in missing()


def test_a_locked_store_or_a_missing_trace_gives_a_one_line_note(tmp_path, monkeypatch):
    keep()
    kept = store.Store(gap.KEPT)
    assert "another headway command is at work" in missing()
    kept.close()
    monkeypatch.setattr(gap, "GAP_NETWORKS", ("cellular-walking",))
    monkeypatch.setenv("HEADWAY_TRACES", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "`headway traces fetch nyc`" in missing()
    (gap.KEPT / store.NAME).write_text("nonsense\n")
    assert "not a run" in missing()


def test_without_runs_the_page_keeps_the_gap(tmp_path):
    (tmp_path / "img").mkdir()
    keep()
    publish(tmp_path, INTERVAL, [outcome()])
    page = tmp_path / "interval.md"
    stood = page.read_text().partition("<!-- gap -->")[2]
    assert "| low-bdp | interval-learned | kernel | 2 | 10.0 | -10.00 |" in stood
    (gap.KEPT / store.NAME).unlink()
    publish(tmp_path, INTERVAL, [outcome()])
    assert page.read_text().partition("<!-- gap -->")[2] == stood
    assert "not made again: no pairs of runs" in page.read_text()
