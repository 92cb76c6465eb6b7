"""A place of its own for whatever makes network namespaces.

Nothing of it stays, and nothing of others is touched. Network, mount and process namespaces of
their own, and an empty /run. What is left over in there can be counted, whatever else goes on at
the machine, and ends with the first process. Congestion controllers alone are the whole machine's:
one that somebody registers meanwhile is counted too. HyStart is the machine's as well: `enter` puts
it back as it was.
"""

import os
import subprocess
import sys
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import hystart

OWN = ("--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child")
INSIDE = "HEADWAY_ENCLOSED"
"""Set in the environment of what runs in such a place."""
GROUP = "HEADWAY_SYSTEM_GROUP"
"""In the environment of system tests: which group of them runs (system_tests.py)."""
OWN_TUN = "mkdir -p /dev/net && mount -t tmpfs tmpfs /dev/net && mknod /dev/net/tun c 10 200"
"""Where the machine has no such device, and root may make one."""
PREPARE = f"mount -t tmpfs tmpfs /run && ip link set lo up && {{ test -c /dev/net/tun || {{ {OWN_TUN}; }}; }}"
RUN = f'{PREPARE} && "$@"; exit $?'
"""The first process is a shell that waits for another one, and buries whatever orphans end
meanwhile."""
TRY = "ip tuntap add dev headway-try mode tun"

REGISTRY = Path("/run/headway")
LOCK = ".lock"
"""Files that end so stay in the registry, empty."""

PINS = Path("/sys/fs/bpf/headway")
"""Where headwayd pins its programs, unless it is told otherwise."""
CONTROLLERS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
DEFAULT_CONTROLLER = Path("/proc/sys/net/ipv4/tcp_congestion_control")

GRACE_S = 30.0
"""What has just ended may still be there for this time."""


def command(*inner: str) -> list[str]:
    """The command that runs another one in such a place.

    It runs as root, else as the root of a user namespace.
    """
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    return ["unshare", *user, *OWN, "sh", "-c", RUN, "sh", *inner]


def refusal() -> str | None:
    """Why namespaces and TUN devices are not available here, and what would help.

    None where they are available.
    """
    try:
        done = subprocess.run(command(*TRY.split()), capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "unshare is missing; install it: sudo apt-get install -y util-linux"
    if done.returncode == 0:
        return None
    said = " ".join(done.stderr.split())
    if "not found" in said:
        return "ip is missing; install it: sudo apt-get install -y iproute2"
    return f"namespaces or TUN devices are not permitted here ({said}); run as root, or permit user namespaces"


def enter(script: str, arguments: list[str]) -> int:
    """Runs the Python script in a place of its own; its exit code."""
    with hystart.kept(), start(script, arguments) as place:
        try:
            return place.wait()
        finally:
            # Its processes end with it.
            place.kill()


def start(script: str, arguments: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """Starts the Python script in a place of its own; `options` are those of Popen."""
    return subprocess.Popen(command(sys.executable, script, *arguments), env=os.environ | {INSIDE: "1"}, **options)


def is_inside() -> bool:
    """Whether this process was started by `start`."""
    return os.environ.get(INSIDE) == "1" and os.getppid() == 1


@dataclass(frozen=True)
class Census:
    """What there is at a moment, each by a name that says what it is."""

    processes: frozenset[str]
    """But for this one and those that have ended."""
    namespaces: frozenset[str]
    """Of the network: of processes, held open by them, or mounted."""
    devices: frozenset[str]
    """Network devices of this namespace."""
    registry: frozenset[str]
    """Files in which Headway notes what it has made."""
    pins: frozenset[str]
    """Folders of programs that outlive their agent."""
    controllers: frozenset[str]
    """Of congestion, that sockets can choose."""
    default_controller: frozenset[str]
    """Of sockets here that choose none; one."""

    @staticmethod
    def take() -> "Census":
        """Counts; meant for a place of its own, where nobody else makes any."""
        processes, namespaces = set(), _mounted()
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                held = [folder / "ns" / "net", *(folder / "fd").iterdir()]
                namespaces |= {link for one in held if (link := _target(one)).startswith("net:[")}
            except OSError:
                # It has ended meanwhile.
                continue
            if words and folder.name != str(os.getpid()):
                processes.add(f"{folder.name} {words}")
        rows = Path("/proc/net/dev").read_text().splitlines()[2:]
        registry = {str(f) for f in REGISTRY.rglob("*") if f.is_file() and f.suffix != LOCK}
        return Census(
            frozenset(processes),
            frozenset(namespaces),
            frozenset(row.partition(":")[0].strip() for row in rows),
            frozenset(registry),
            frozenset(str(folder) for folder in PINS.glob("*")),
            frozenset(CONTROLLERS.read_text().split()),
            frozenset(DEFAULT_CONTROLLER.read_text().split()),
        )

    def more_than(self, before: "Census") -> list[str]:
        """What is there that was not before, a line each."""
        return [
            f"{field.name}: {one}"
            for field in fields(Census)
            for one in sorted(getattr(self, field.name) - getattr(before, field.name))
        ]


def left_over(before: Census, grace_s: float = GRACE_S) -> list[str]:
    """What is still there, after some time, that was not before; a line each."""
    until = time.monotonic() + grace_s
    while (left := Census.take().more_than(before)) and time.monotonic() < until:
        time.sleep(0.1)
    return left


def _mounted() -> set[str]:
    """Namespaces that a mount keeps, as `ip netns add` makes them."""
    rows = (line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines())
    return {row[3] for row in rows if row[3].startswith("net:[")}


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""
