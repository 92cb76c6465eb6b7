"""The system tests' own check for leftovers finds them."""

import subprocess
import sys
from pathlib import Path

import pytest

import daemon
import enclosure
from headway._native import find_headwayd
from processes import command_line, everybody
from waiting import until

pytestmark = [pytest.mark.system, pytest.mark.controllers]

DEFAULT = "/proc/sys/net/ipv4/tcp_congestion_control"
SCRIPT = """
import subprocess, sys, time
sys.path.insert(0, {scripts!r})
import enclosure
before = enclosure.Census.take()
subprocess.run(["sh", "-c", sys.argv[1]], check=True)
kinds, end = sys.argv[2].split(), time.monotonic() + 120
while True:
    left = enclosure.left_over(before, grace_s=0.3)
    if sorted(line.partition(":")[0] for line in left) == kinds or time.monotonic() > end:
        break
print("\\n".join(left))
"""


def left_by(command, tmp_path, kinds):
    """The leftovers of a shell command in a separate place.

    Only things of these kinds count.
    """
    script = tmp_path / "run.py"
    script.write_text(SCRIPT.format(scripts=str(Path(enclosure.__file__).parent)))
    inner = enclosure.command(sys.executable, str(script), command, " ".join(kinds))
    done = subprocess.run(inner, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize(
    ("command", "kinds"),
    [
        ("true", []),
        ("sleep 0.1 &", []),  # ends within the grace
        ("unshare --net true", []),
        ("sleep 60 >/dev/null 2>&1 &", ["processes"]),
        ("unshare --net sleep 60 >/dev/null 2>&1 &", ["namespaces", "processes"]),
        ("mkdir -p /run/netns && ip netns add left", ["namespaces"]),
        ("ip tuntap add dev left0 mode tun", ["devices"]),
        (f"grep -q reno {DEFAULT} && echo cubic >{DEFAULT} || echo reno >{DEFAULT}", ["default_controller"]),
        ("mount -t bpf bpf /sys/fs/bpf && mkdir -p /sys/fs/bpf/headway/left", ["pins"]),
        ("mkdir /run/headway && touch /run/headway/entry /run/headway/registry.lock", ["registry"]),
    ],
)
def test_leftovers_of_a_command_are_found(tmp_path, command, kinds):
    left = left_by(command, tmp_path, kinds)
    assert sorted(line.partition(":")[0] for line in left if line) == kinds


@pytest.mark.usefixtures("bpf")
@pytest.mark.parametrize(
    ("end", "kinds"),
    [
        ("true", ["controllers", "processes"]),
        # An agent unregisters it at SIGTERM. After SIGKILL the kernel does.
        ("kill $! && wait", []),
        ("kill -KILL $! && wait", []),
    ],
)
def test_a_controller_that_stays_registered_is_found(tmp_path, end, kinds):
    """The agent runs, or has ended by itself, or was killed."""
    run = [find_headwayd(), "run", "--no-agent", "--controllers", "headway_owl", "--name", "headway_left"]
    words = " ".join([*run, "--socket", str(tmp_path / "socket")])
    ready = f"until grep -q ready {tmp_path}/out; do sleep 0.05; done"
    left = left_by(f"{words} >{tmp_path}/out 2>&1 & {ready}; {end}", tmp_path, kinds)
    assert sorted(line.partition(":")[0] for line in left if line) == kinds
    assert ("controllers: headway_left" in left) == bool(kinds)
    # The last process of the place ends it.
    until(lambda: "headway_left" not in daemon.registered())


def test_nothing_inside_the_enclosure_reaches_the_outside(tmp_path):
    """The devices and processes left inside end with the place."""
    left_by("ip tuntap add dev left1 mode tun; sleep 61 >/dev/null 2>&1 &", tmp_path, ["devices", "processes"])
    assert "left1" not in Path("/proc/net/dev").read_text()
    assert all(command_line(pid)[:2] != ["sleep", "61"] for pid in everybody())
