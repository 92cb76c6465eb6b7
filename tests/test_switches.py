"""If flows get no reports of switches, schemes that observe them give a warning."""

from pathlib import Path

import pytest

from headway._native import Scenario, features
from headway.benches.plan import Options, Plan
from headway.gap.plan import Settings
from headway.gap.run import ask
from headway.runs.switches import FEATURES, without_switches

TINY = Path(__file__).parent.parent / "crates/policy/tests/fixtures/tiny-v1"
LEARNED = Path(__file__).parent.parent / "models" / "rax-v3"
LINE = (
    "world {} gives flows no information about switches: on owl-nsfnet:known=1, owl decides as if none were known; "
    "take world sim, or real switches (headway testbed)"
)


def test_features_of_switches_need_a_measurement_agent():
    told = {one["name"] for one in features() if one["kernel"] == ["the measurement agent"]}
    # An age alone has no information about a path.
    assert told - {"network_age_ms"} == FEATURES


@pytest.mark.parametrize(
    ("scenario", "schemes", "world", "who"),
    [
        ("owl-nsfnet:known=1", ["owl", "cubic"], "emu", "owl decides"),
        ("owl-nsfnet:known=1", ["owl", "owl-loss", "aurora"], "kernel", "owl, owl-loss decide"),
        ("owl-nsfnet:known=1", ["owl"], "sim", None),
        ("owl-nsfnet:known=0", ["owl"], "emu", None),
        ("pantheon-default", ["owl"], "emu", None),
        ("owl-nsfnet:known=1", ["cubic", "aurora", f"learned:model={TINY}"], "emu", None),
        ("owl-nsfnet:known=1", ["rax", "rax-pretrained", f"rax-pretrained:model={LEARNED}"], "emu", None),
    ],
)
def test_schemes_that_observe_switches_without_an_agent_are_named(scenario, schemes, world, who):
    lines = without_switches([Scenario.load(scenario)], schemes, world)
    assert len(lines) == (who is not None)
    assert all(f"on {scenario}, {who} as if" in line for line in lines)


def test_a_bench_and_a_gap_warn_once_of_missing_switch_reports(tmp_path):
    plan = Plan(Options(schemes=["owl"], scenarios=["owl-nsfnet:known=1"], world="emu", runs=1, seconds=1))
    with plan.in_folder(tmp_path / "out") as kept:
        assert kept.facts["notes"].count(LINE.format("emu")) == 1
    settings = Settings(runs=1, seconds=1.0)
    asked = ask(["owl", "cubic"], ["owl-nsfnet:known=1"], settings)
    assert asked.notes.count(LINE.format("emu")) == 1
