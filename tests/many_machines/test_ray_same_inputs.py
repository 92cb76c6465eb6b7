"""Headway's code, scenarios, traces and models must be the same on all machines.

Machines with other ones are refused.
"""

from dataclasses import replace

import pytest

import headway
from fake_ray import RayTaskError
from headway._native import Scenario, Trace, UsageError
from headway.runs import sent

BENCH = ["cubic"], ["rax-1"]
FIG8 = ("rax", "fig8")


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


def test_a_scenario_file_is_sent_unless_its_trace_is_in_the_same_folder(tmp_path):
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
    with pytest.raises(headway.Error, match=rf"^ray auto: machine \S+: {why}; 0 of 3 runs finished$") as refused:
        headway.bench(*BENCH, runs=3, out=tmp_path, ray="auto")
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
