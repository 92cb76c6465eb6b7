"""A separate place for programs that make network namespaces.

It has its own network, mount and process namespaces, and an empty /run. Nothing outside is changed,
and nothing is left after its end. Leftovers inside can be counted regardless of other activity on
the machine, and they end with the first process. Only congestion controllers belong to the whole
machine: one that another program registers meanwhile is counted too. HyStart is also a setting of
the machine: `enter` restores it.
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
"""A variable that is set in the environment of processes in such a place."""
GROUP = "HEADWAY_SYSTEM_GROUP"
"""A variable in the environment of system tests: the group that runs (system_tests.py)."""
OWN_TUN = "mkdir -p /dev/net && mount -t tmpfs tmpfs /dev/net && mknod /dev/net/tun c 10 200"
"""A command that makes a TUN device where the machine has none and root may make one."""
PREPARE = f"mount -t tmpfs tmpfs /run && ip link set lo up && {{ test -c /dev/net/tun || {{ {OWN_TUN}; }}; }}"
RUN = f'{PREPARE} && "$@"; exit $?'
"""The command of the first process. The shell waits for another process, and reaps orphans."""
TRY = "ip tuntap add dev headway-try mode tun"

REGISTRY = Path("/run/headway")
LOCK = ".lock"
"""The ending of files that stay in the registry, empty."""

PINS = Path("/sys/fs/bpf/headway")
"""The folder in which headwayd pins its programs by default."""
CONTROLLERS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
DEFAULT_CONTROLLER = Path("/proc/sys/net/ipv4/tcp_congestion_control")

GRACE_S = 30.0
"""An ended process may leave its objects for this time."""


def command(*inner: str) -> list[str]:
    """The command that runs another one in such a place.

    It runs as root, or as the root of a user namespace.
    """
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    return ["unshare", *user, *OWN, "sh", "-c", RUN, "sh", *inner]


def refusal() -> str | None:
    """The reason why namespaces and TUN devices are not available here, and a remedy.

    None if they are available.
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
    """Runs the Python script in a separate place, and returns its exit code."""
    with hystart.kept(), start(script, arguments) as place:
        try:
            return place.wait()
        finally:
            # The processes in the place end with it.
            place.kill()


def start(script: str, arguments: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """Starts the Python script in a separate place. `options` are those of Popen."""
    return subprocess.Popen(command(sys.executable, script, *arguments), env=os.environ | {INSIDE: "1"}, **options)


def is_inside() -> bool:
    """Whether this process was started by `start`."""
    return os.environ.get(INSIDE) == "1" and os.getppid() == 1


@dataclass(frozen=True)
class Census:
    """The objects that exist at a moment, each by a name that describes it."""

    processes: frozenset[str]
    """Processes, without this one and without those that have ended."""
    namespaces: frozenset[str]
    """Network namespaces of processes, held open by them, or mounted."""
    devices: frozenset[str]
    """Network devices of this namespace."""
    registry: frozenset[str]
    """Files in which Headway records the objects that it has made."""
    pins: frozenset[str]
    """Folders of programs that stay after their agent."""
    controllers: frozenset[str]
    """Congestion controllers that sockets can choose."""
    default_controller: frozenset[str]
    """The congestion controller of sockets that choose none; it has one entry."""

    @staticmethod
    def take() -> "Census":
        """Counts the objects.

        It is meant for a separate place, where no other program makes any.
        """
        processes, namespaces = set(), _mounted()
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                held = [folder / "ns" / "net", *(folder / "fd").iterdir()]
                namespaces |= {link for one in held if (link := _target(one)).startswith("net:[")}
            except OSError:
                # The process has ended meanwhile.
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
        """The objects that did not exist before, one in a line."""
        return [
            f"{field.name}: {one}"
            for field in fields(Census)
            for one in sorted(getattr(self, field.name) - getattr(before, field.name))
        ]


def left_over(before: Census, grace_s: float = GRACE_S) -> list[str]:
    """The objects that still exist after some time and did not exist before, one in a line."""
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
