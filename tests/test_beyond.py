"""A comparison of a model on networks beyond its training gives a warning."""

from pathlib import Path

import pytest

import headway
from headway._native import Scenario
from headway.benches.beyond import beyond

MODELS = Path(__file__).parent.parent / "models"
AURORA = f"learned:model={MODELS / 'aurora-v1'}"
"""The training range: 1.2 to 6 Mbit/s and RTTs of 100 to 1000 ms, as in PCC-RL."""


def folder_of(place: Path, rates: str, rtts: str) -> str:
    """A scheme of a model with this training. Only the card is read."""
    place.mkdir()
    card = f"[training.range]\nrate_mbps = {rates}\nrtt_ms = {rtts}\n"
    (place / "card.toml").write_text(card)
    return f"learned:model={place}"


def names_of(lines: list[str]) -> list[str]:
    return [line.partition("; ")[2].partition(" beyond")[0] for line in lines]


def test_a_link_of_twelve_is_beyond_a_training_of_six() -> None:
    within, above = Scenario.load("aurora-training"), Scenario.load("pantheon-default")
    assert beyond([within], [AURORA, "cubic"]) == []
    (line,) = beyond([within, above], [AURORA, "cubic"])
    trained = f"{AURORA} was trained on 1.2 to 6 Mbit/s and 102 to 1000 ms of RTT"
    assert line == f"{trained}; pantheon-default is beyond that, so its results there say little"


@pytest.mark.parametrize(
    ("rates", "rtts", "is_beyond"),
    [
        ("[6.0, 24.0]", "[60.0, 240.0]", False),
        ("[6.0, 11.6]", "[60.0, 240.0]", False),  # within five percent
        ("[6.0, 11.0]", "[60.0, 240.0]", True),
        ("[13.0, 24.0]", "[60.0, 240.0]", True),
        ("[6.0, 24.0]", "[60.0, 100.0]", True),
        ("[6.0, 24.0]", "[140.0, 240.0]", True),
    ],
)
def test_rates_and_rtts_beyond_training_are_named(tmp_path: Path, rates: str, rtts: str, is_beyond: bool) -> None:
    """The scenario has 12 Mbit/s and 60 ms each way."""
    scheme = folder_of(tmp_path / "mine-v1", rates, rtts)
    found = beyond([Scenario.load("pantheon-default")], [scheme])
    assert names_of(found) == ["pantheon-default is"] * is_beyond


def test_an_outage_of_a_recording_does_not_count_as_beyond_training(tmp_path: Path) -> None:
    recorded = Scenario.load("synthetic-att")
    least, most = recorded.path_range(10)["rate_mbps"]
    (rtt, _) = recorded.path_range(10)["rtt_ms"]
    scheme = folder_of(tmp_path / "mine-v1", f"[{(least + most) / 2}, {most * 2}]", f"[{rtt / 2}, {rtt * 2}]")
    assert beyond([recorded], [scheme]) == []


def test_each_of_several_models_is_checked_and_at_most_three_scenarios_are_named(tmp_path: Path) -> None:
    wide = folder_of(tmp_path / "a-v1", "[0.1, 1000.0]", "[1.0, 1000.0]")
    slow = folder_of(tmp_path / "b-v1", "[0.1, 1.0]", "[1.0, 1000.0]")
    every = [Scenario.load(name) for name in ("pantheon-default", "low-bdp", "high-bdp", "synthetic-att")]
    assert beyond(every, [wide]) == []
    both = f"{wide}:model={slow.partition('model=')[2]}"
    assert names_of(beyond(every, [both])) == ["pantheon-default, low-bdp, high-bdp and 1 more are"]


def test_a_bench_warns_of_a_scenario_beyond_training() -> None:
    with pytest.warns(UserWarning, match="was trained on 1.2 to 6 Mbit/s.*pantheon-default is beyond that"):
        results = headway.bench([AURORA, "cubic"], ["pantheon-default"], runs=1, seconds=1)
    assert any("pantheon-default is beyond" in line for line in results.warnings)


def test_a_built_in_scheme_and_a_card_without_a_range_are_not_checked(tmp_path: Path) -> None:
    (tmp_path / "card.toml").write_text("[training]\n")
    every = [Scenario.load("pantheon-default")]
    assert beyond(every, ["aurora:model=v1", "owl", "cubic", f"learned:model={tmp_path}"]) == []
