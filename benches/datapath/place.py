"""Makes two hosts and a link between them, and counts the work of the machine.

Traffic has one processor and the agent the other. A heartbeat keeps the agent's processor from
sleeping: a machine of two virtual processors halves its throughput when one of them is idle.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from daemon import used_s

CONTROLLER = f"bench_{os.urandom(2).hex()}"
"""A unique name. Names of controllers are global to the machine, and another measurement may
run."""
NEAR, FAR = "bench-near", "bench-far"
FAR_ADDRESS = "10.77.0.2"
TRAFFIC_CPU, AGENT_CPU = 0, 1
TICKS = os.sysconf("SC_CLK_TCK")
OFFLOADS = Path(__file__).with_name("offloads.py")
HEARTBEAT = "import time\nwhile True: time.sleep(0.001)"
IPERF3_PORT = 5201
WRITE = {True: "1M", False: "128K"}
"""The bytes that iperf3 writes at a time, by whether packets are as TSO makes them. With its own
128 KB a flow has 18 or 40 Gbit/s with any controller, depending on how writer and reader alternate.
With 1 MB it has 63."""
SSTHRESH = 1024
"""The ssthresh of an unshaped link's route, in packets. Where nothing is lost slow start never
ends, and Owl is not asked in slow start."""
INITIAL_CWND = 2 * SSTHRESH
"""The initial window of that route, in packets. It is beyond slow start, and more than such a link
holds."""
QUEUE_S = 0.02
"""The default length of the queue of a link with a rate."""


def inside(host: str, cpu: int, *command: str) -> list[str]:
    """The command that runs another one on a host and a processor."""
    return ["ip", "netns", "exec", host, "taskset", "-c", str(cpu), *command]


@contextmanager
def link(
    is_offloaded: bool = True, mbps: int | None = None, mtu: int = 1500, queue_s: float = QUEUE_S
) -> Iterator[None]:
    """Makes a veth pair between two new hosts, unshaped or with a rate of this many Mbit/s.

    The hosts end with it.

    Args:
        is_offloaded: Whether packets cross it as TSO, GSO and GRO make them. If not, each is a
            packet of the link.
        mbps: The rate of the link; None for an unshaped link.
        mtu: Bytes of a packet. If they are not 1500, each packet is acknowledged by itself.
        queue_s: The length of the queue in seconds.
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
    """Starts a process that keeps the agent's processor awake, and returns its identifier."""
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
    """Runs a program on a host and the processor of the traffic, until this context ends."""
    words = inside(host, TRAFFIC_CPU, *command)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def server() -> Iterator[int]:
    """Runs `iperf3 -s` on the far host, and returns its process."""
    with running(FAR, "sh", "-c", "exec iperf3 -s >/dev/null") as process:
        wait_for_server(IPERF3_PORT)
        yield process.pid


class Client:
    """A running `iperf3 -c` on the near host."""

    def __init__(
        self, controller: str, seconds: float, is_offloaded: bool = True, options: Sequence[str] = ()
    ) -> None:
        words = f"iperf3 -c {FAR_ADDRESS} -C {controller} -t {seconds:g} -l {WRITE[is_offloaded]} -J".split()
        words += options
        self.seconds = seconds
        self.process = subprocess.Popen(
            inside(NEAR, TRAFFIC_CPU, *words), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def result(self) -> dict[str, float]:
        """Waits for its end, and returns the bytes sent and received, and the flow's means.

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
    """Waits until the far host answers.

    Raises:
        RuntimeError: If it does not.
    """
    until = time.monotonic() + 10
    words = inside(FAR, TRAFFIC_CPU, "ss", "-Hltn", f"sport = :{port}")
    while not subprocess.run(words, check=True, capture_output=True).stdout:
        if time.monotonic() > until:
            raise RuntimeError(f"no program listens at port {port}")
        time.sleep(0.05)


def busy_s() -> float:
    """CPU seconds of all processors: the time that the kernel does not count as idle.

    They count from an arbitrary start.

    The kernel's idle time is exact. Its count of work samples each tick of 4 ms. An agent that runs
    for microseconds at each jiffy, as Owl's does, would seem to work all the time.
    """
    _, _, _, idle, wait, *_ = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:])
    return time.monotonic() * (os.cpu_count() or 1) - (idle + wait) / TICKS


def others_cores(heart: int, seconds: float = 0.5) -> float:
    """The number of cores that other processes use while nothing is measured."""
    start, busy, beat = time.monotonic(), busy_s(), used_s(heart)
    time.sleep(seconds)
    return max(0.0, busy_s() - busy - (used_s(heart) - beat)) / (time.monotonic() - start)


def _ip(*words: str) -> None:
    _run("ip", *words)


def _run(*words: str) -> None:
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
