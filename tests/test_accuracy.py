"""What `make bench` reads from the validation tests."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("line", "offs"),
    [
        # Differences over bounds, by hand: 1% and 2 ms; 5% or a packet; 2 points and a factor of 1.5.
        (
            "sourdough, window 20: Graph { mbps: 3.3734, p95_queue_ms: 95.0, p95_signal_ms: 282.0 }",
            [1.0, -0.5, 2.0],
        ),
        ("newreno, buffer 12, mean queue, ms: 1.395, model 1: +39.5%", [0.395]),
        ("test x ... cubic:c=1, buffer 240, period, s: 7.15, model 6.5: +10.0%", [2.0]),
        ("TcpCubic, ACK every 2 0.95 1e-4: ours Sawtooth { utilisation: 0.96, loss: 0.00005, mean", [0.5, 2.0]),
        ("test behaviour::threads_change_nothing ... ok", []),
    ],
)
def test_a_printed_line_becomes_checks(monkeypatch, line, offs):
    monkeypatch.syspath_prepend(ROOT / "benches")
    accuracy = importlib.import_module("accuracy")
    assert [check.off for check in accuracy.checks(line)] == pytest.approx(offs)
