"""Response times for people.

They are those of the help, a report, the counters of a network, and a lost agent.
"""

import statistics
import subprocess
import sys
import time

import pytest

from headway.netwatch.api import Limits, make_app
from headway.netwatch.client import Client
from headway.tune.sockets import SocketMonitor
from netwatch_served import Published, flood, serving
from test_browser import fair_bench, open_report, twenty_schemes
from test_tune_processes import cluster
from tune_cluster import DEFAULT, RESTORE_S, are, are_tuned, hosts_of, until

pytestmark = pytest.mark.live

__all__ = ["cluster", "fair_bench", "open_report", "twenty_schemes"]


def test_help_appears_within_half_a_second():
    command = [sys.executable, "-m", "headway", "--help"]
    seconds = []
    for _ in range(5):
        begun = time.monotonic()
        subprocess.run(command, capture_output=True, check=True)
        seconds.append(time.monotonic() - begun)
    print("help after", *(f"{one:.2f}" for one in seconds), "s")
    assert statistics.median(seconds) < 0.5


def test_a_report_of_twenty_schemes_opens_in_four_seconds(open_report, twenty_schemes):
    window = open_report(twenty_schemes)
    timing = "(t => t.loadEventEnd - t.startTime)(performance.getEntriesByType('navigation')[0])"
    took_ms = window.evaluate(timing)
    print(f"loaded after {took_ms:.0f} ms")
    assert took_ms < 4000


def test_a_flood_delays_no_snapshot_by_a_second():
    broadcast = Published()
    with serving(make_app(broadcast.watch, broadcast, Limits(1, 20)), broadcast) as port:
        broadcast.publish(broadcast.watch.snapshot())
        snapshots = Client(f"http://127.0.0.1:{port}").stream()
        next(snapshots)
        waited = []
        with flood(port):
            for _ in range(20):
                begun = time.monotonic()
                broadcast.go()
                next(snapshots)
                waited.append(time.monotonic() - begun)
    print(f"the longest wait for a snapshot: {max(waited):.3f} s")
    assert max(waited) < 1


def test_hosts_restore_defaults_soon_after_their_agent_ends(cluster):
    cluster.kill("agent-0")
    until(lambda: are(cluster.hosts(0), len(hosts_of(0)), DEFAULT), cluster)
    waited = [host["restored_after_s"] for host in cluster.hosts(0)]
    cluster.start("agent-0")
    until(lambda: are_tuned(cluster.hosts(0), 0), cluster)
    print(f"restored after {min(waited):.2f} to {max(waited):.2f} s of silence")
    assert max(waited) < RESTORE_S + 1.5


def test_sampling_the_sockets_takes_a_small_part_of_t1():
    monitor = SocketMonitor("bbr")
    took = []
    for _ in range(20):
        begun = time.perf_counter()
        monitor.sample()
        took.append(time.perf_counter() - begun)
    monitor.close()
    print(f"a sample takes {1e3 * statistics.median(took):.2f} ms")
    assert statistics.median(took) < 0.005
