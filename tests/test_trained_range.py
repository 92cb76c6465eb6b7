"""The range of paths that a model was trained on, from its card."""

import pytest

from headway import models
from headway._native import Scenario, Trace
from headway.models.learner import shipped_learners
from headway.trained_range import described, trained_range

LINK = """schema = 1
name = "{name}"
seconds = 20
packet_size = "1250B"
[bottleneck]
rate = "{rate}"
delay = "20ms"
queue = "{queue}"
loss = {loss}
"""


@pytest.fixture
def scenario(tmp_path):
    """Writes a scenario of one link, and returns its path."""

    def write(name, rate="10Mbps..100Mbps", queue="100pkt", loss='"0..2%"'):
        path = tmp_path / f"{name}.toml"
        path.write_text(LINK.format(name=name, rate=rate, queue=queue, loss=loss))
        return str(path)

    return write


def test_the_range_covers_all_scenarios(scenario):
    """At 10 Mbit/s a packet of 1250 bytes takes 1 ms, and a full queue of 100 packets 100 ms."""
    bounds = trained_range([scenario("a"), scenario("b", rate="200Mbps", loss="0")])["range"]
    assert bounds["rate_mbps"] == pytest.approx([10, 200], rel=0.02)
    assert bounds["rtt_ms"] == pytest.approx([40.05, 41], rel=0.01)
    assert bounds["buffer_ms"] == pytest.approx([5, 100], rel=0.02)
    assert bounds["loss"] == pytest.approx([0, 0.02], rel=0.02)


def test_a_queue_that_never_drops_leaves_the_buffer_out(scenario):
    bounds = trained_range([scenario("endless", queue="infinite")])["range"]
    assert bounds.keys() == {"rate_mbps", "rtt_ms", "loss"}


def test_the_trained_range_is_written_in_words():
    bounds = {"rate_mbps": [12, 12], "rtt_ms": [10.5, 70], "buffer_ms": [1, 2000], "loss": [0, 0.02]}
    words = "12 Mbit/s, 10.5 to 70 ms of RTT, 1 to 2000 ms of buffer, 0 to 2% random loss"
    assert described(bounds) == words
    del bounds["buffer_ms"]
    assert described(bounds) == words.replace("1 to 2000 ms of buffer, ", "")


@pytest.mark.parametrize("model", [*models.shipped(), *shipped_learners()], ids=lambda model: model.title)
def test_a_shipped_model_states_the_range_of_its_own_scenarios(model):
    training = model.card["training"]
    traces = {name for scenario in training["scenarios"] for name in Scenario.load(scenario).traces}
    if any(Trace.find(name) is None for name in traces):
        pytest.skip("needs recorded traces: headway traces fetch mahimahi")
    assert training["range"] == trained_range(training["scenarios"])["range"]


def test_the_terminal_shows_the_range(run):
    """The scenario bbr-training has links of 1 to 10 Mbit/s."""
    shown = run("models", "show", "bbr-tuner-ppo-v1").stdout
    assert "1 to 10 Mbit/s, 11.3 to" in shown.partition("[net]")[0]
    assert "1 to 10 Mbit/s, 11.3 to" in run("models").stdout
