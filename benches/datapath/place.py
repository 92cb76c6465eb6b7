"""Two hosts and a link between them, and what the machine does meanwhile.

Traffic has one processor and the agent the other, where a heartbeat keeps the second from sleeping:
a machine of two virtual processors halves its throughput when one of them idles.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daemon import used_s

CONTROLLER = f"bench_{os.urandom(2).hex()}"
"""A name of its own: names of controllers are global to the machine, and somebody else may measure
too."""
NEAR, FAR = "bench-near", "bench-far"
FAR_ADDRESS = "10.77.0.2"
TRAFFIC_CPU, AGENT_CPU = 0, 1
TICKS = os.sysconf("SC_CLK_TCK")
OFFLOADS = Path(__file__).with_name("offloads.py")
HEARTBEAT = "import time\nwhile True: time.sleep(0.001)"
IPERF3_PORT = 5201
WRITE = {True: "1M", False: "128K"}
"""What iperf3 writes at a time, by whether packets are as TSO makes them: with its own 128 KB a
flow of those has 18 or 40 Gbit/s, as writer and reader happen to take turns, whichever controller
it has; with 1 MB it has 63."""
SSTHRESH = 1024
"""Packets, of an unshaped link's route: where nothing is lost slow start never ends, and Owl is
never asked."""
INITIAL_CWND = 2 * SSTHRESH
"""Packets: beyond slow start, and more than such a link takes."""
QUEUE_S = 0.02
"""What the queue of a link with a rate holds, unless told."""


def inside(host: str, cpu: int, *command: str) -> list[str]:
    """The command that runs another one on a host and a processor."""
    return ["ip", "netns", "exec", host, "taskset", "-c", str(cpu), *command]


@contextmanager
def link(
    is_offloaded: bool = True, mbps: int | None = None, mtu: int = 1500, queue_s: float = QUEUE_S
) -> Iterator[None]:
    """A veth pair between two hosts of its own, unshaped or of this many Mbit/s.

    The hosts end with it.

    Args:
        is_offloaded: Do packets cross it as TSO, GSO and GRO make them? If not, each is one of the
            link.
        mbps: Its rate; None for none.
        mtu: Bytes of a packet; where they are not 1500, each is acknowledged by itself.
        queue_s: What its queue holds, in seconds.
    """
    try:
        for host in (NEAR, FAR):
            _ip("netns", "add", host)
        _ip("-n", NEAR, "link", "add", "veth", "type", "veth", "peer", "name", "veth", "netns", FAR)
        for host, address in ((NEAR, "10.77.0.1"), (FAR, FAR_ADDRESS)):
            _ip("-n", host, "addr", "add", f"{address}/24", "dev", "veth")
            _ip("-n", host, "link", "set", "veth", "up", "mtu", str(mtu))
            metrics = ["quickack", "1"] if mtu != 1500 else []
            metrics += [] if mbps else ["initcwnd", str(INITIAL_CWND), "ssthresh", str(SSTHRESH)]
            if metrics:
                _ip("-n", host, "route", "change", "10.77.0.0/24", "dev", "veth", *metrics)
            state = "on" if is_offloaded else "off"
            _run(*inside(host, TRAFFIC_CPU, sys.executable, str(OFFLOADS), "veth", state))
        if mbps:
            limit = int(mbps * 1e6 / 8 * queue_s)
            words = f"qdisc add dev veth root tbf rate {mbps}mbit burst 16kb limit {limit}"
            _run("tc", "-n", NEAR, *words.split())
        yield
    finally:
        for host in (NEAR, FAR):
            subprocess.run(["ip", "netns", "del", host], check=False, capture_output=True)


@contextmanager
def heartbeat() -> Iterator[int]:
    """Keeps the agent's processor awake; the process that does."""
    beat = subprocess.Popen(
        ["taskset", "-c", str(AGENT_CPU), sys.executable, "-c", HEARTBEAT], stderr=subprocess.DEVNULL
    )
    try:
        yield beat.pid
    finally:
        beat.kill()
        beat.wait()


@contextmanager
def running(host: str, *command: str) -> Iterator["subprocess.Popen[str]"]:
    """A program on a host and the processor of the traffic, until this ends."""
    words = inside(host, TRAFFIC_CPU, *command)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def server() -> Iterator[int]:
    """`iperf3 -s` on the far host; its process."""
    with running(FAR, "sh", "-c", "exec iperf3 -s >/dev/null") as process:
        wait_for_server(IPERF3_PORT)
        yield process.pid


class Client:
    """`iperf3 -c` on the near host, under way."""

    def __init__(self, controller: str, seconds: float, is_offloaded: bool = True) -> None:
        words = f"iperf3 -c {FAR_ADDRESS} -C {controller} -t {seconds:g} -l {WRITE[is_offloaded]} -J".split()
        self.seconds = seconds
        self.process = subprocess.Popen(
            inside(NEAR, TRAFFIC_CPU, *words), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def result(self) -> dict[str, float]:
        """Waits for its end. What it sent and received, and the flow's means.

        Raises:
            RuntimeError: If it failed.
        """
        try:
            text, _ = self.process.communicate(timeout=self.seconds + 20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise RuntimeError(f"iperf3 was not done after {self.seconds + 20:.0f} s") from None
        found = json.loads(text or "{}")
        if "error" in found or "end" not in found:
            raise RuntimeError(f"iperf3: {found.get('error', 'no answer')}")
        end = found["end"]
        sender = end["streams"][0]["sender"]
        windows = [row["streams"][0]["snd_cwnd"] for row in found["intervals"]]
        return {
            "mbps": end["sum_received"]["bits_per_second"] * 1e-6,
            "gb": end["sum_sent"]["bytes"] * 1e-9,
            "cwnd_kb": sum(windows) / len(windows) / 1e3,
            "rtt_us": sender["mean_rtt"],
            "retransmits": sender["retransmits"],
        }


def wait_for_server(port: int) -> None:
    """Until the far host answers.

    Raises:
        RuntimeError: If it does not.
    """
    until = time.monotonic() + 10
    words = inside(FAR, TRAFFIC_CPU, "ss", "-Hltn", f"sport = :{port}")
    while not subprocess.run(words, check=True, capture_output=True).stdout:
        if time.monotonic() > until:
            raise RuntimeError(f"nobody listens at port {port}")
        time.sleep(0.05)


def busy_s() -> float:
    """Seconds of work of all processors, up to a constant: what the kernel does not count as idle.

    Its idle time is exact. What it counts as work is what each tick of 4 ms finds, and an agent
    that is up for microseconds at each jiffy, as Owl's is, would have them all.
    """
    _, _, _, idle, wait, *_ = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:])
    return time.monotonic() * (os.cpu_count() or 1) - (idle + wait) / TICKS


def others_cores(heart: int, seconds: float = 0.5) -> float:
    """How many cores somebody else uses, while nothing is measured."""
    start, busy, beat = time.monotonic(), busy_s(), used_s(heart)
    time.sleep(seconds)
    return max(0.0, busy_s() - busy - (used_s(heart) - beat)) / (time.monotonic() - start)


def _ip(*words: str) -> None:
    _run("ip", *words)


def _run(*words: str) -> None:
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
