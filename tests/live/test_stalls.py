"""The clock of a run stops while its emulator is stopped, so the kernel's Cubic hardly notices."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from test_emu_bench import BENCH
from waiting import repeating

pytestmark = pytest.mark.live

SECONDS = 25
EVERY_S = 0.5
STALL_S = 0.012
"""This is twice the time in which rax-1's queue drains. Two signals and a thread make it 20 ms."""


def stalls(bench):
    """Stops the emulator processes of this bench repeatedly."""

    def stop_and_go():
        workers = children(bench.pid)
        for signal_, wait_s in ((signal.SIGSTOP, STALL_S), (signal.SIGCONT, 0)):
            for pid in workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal_)
            time.sleep(wait_s)

    return repeating(stop_and_go, EVERY_S)


def children(pid):
    """Processes that the threads of this process have started."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError):
            found += [int(child) for child in task.read_text().split()]
    return found


def bench(out, has_stalls):
    """The run of Cubic over 20 Mbit/s and a queue of 10 packets."""
    words = ["--schemes", "kernel-cubic", "--scenario", "rax-1", "--runs", "1", "--jobs", "1", "--warmup", "10"]
    command = [*BENCH, *words, "--seconds", str(SECONDS), "--out", str(out)]
    with (
        subprocess.Popen(command, stdout=subprocess.DEVNULL) as running,
        stalls(running) if has_stalls else contextlib.nullcontext(),
    ):
        assert running.wait(timeout=300) == 0
    (run,) = (row for row in pq.read_table(out / "results.parquet").to_pylist() if row["flow"] == -1)
    print(f"{run['throughput_mbps']:.2f} Mbit/s, loss {run['loss']:.3%}, stall {run['longest_stall_ms']:.1f} ms")
    return run


@pytest.mark.needs(gap_ms=None, stood_still=None)
def test_stalls_barely_slow_cubic(tmp_path):
    """Without this correction Cubic had a fifth of its throughput with these stalls."""
    quiet, stalled = bench(tmp_path / "quiet", False), bench(tmp_path / "stalled", True)
    assert stalled["longest_stall_ms"] > 1e3 * STALL_S
    assert stalled["throughput_mbps"] > 0.8 * quiet["throughput_mbps"]
