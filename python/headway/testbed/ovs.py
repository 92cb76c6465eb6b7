"""Open vSwitch for one testbed: ovsdb-server and ovs-vswitchd with all files in its folder."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from headway._native import RunError
from headway.testbed.own import PATIENCE_S, do

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headway.testbed.own import Namespace

TOOLS = ("ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl")
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
PIDFD_GETFD = 438
"""The number of a system call, the same on all architectures."""
SO_SNDBUFFORCE = 32
SEND_BUFFER = 64 << 20
_libc = ctypes.CDLL(None, use_errno=True)


class Ovs:
    """Both daemons. The switches' ports are devices of one namespace."""

    def __init__(self, folder: Path, namespace: Namespace, environment: dict[str, str]) -> None:
        """Prepares the daemons, and starts nothing yet."""
        self._folder, self._namespace = folder, namespace
        self._environment = environment | {f"OVS_{kind}DIR": str(folder) for kind in ("RUN", "LOG", "DB")}
        self._database = f"unix:{folder}/db.sock"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Starts both daemons. Raises RunError."""
        file = self._folder / "conf.db"
        do("ovsdb-tool", "create", str(file), str(SCHEMA))
        remote = f"--remote=p{self._database}"
        self._spawn("ovsdb-server", str(file), remote, f"--unixctl={self._folder}/db.ctl")
        wait_for((self._folder / "db.sock").exists, lambda: "ovsdb-server does not start", self.check)
        self.vsctl("--no-wait", "init")
        switch = ("ovs-vswitchd", self._database, f"--unixctl={self._folder}/vswitchd.ctl")
        self._spawn(*switch, first=_first())

    def _spawn(self, *command: str, first: tuple[str, ...] = ()) -> None:
        with (self._folder / f"{command[0]}.log").open("ab") as log:
            self.processes[command[0]] = subprocess.Popen(
                self._namespace.stays(*first, *command),
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C is meant for the program.
                start_new_session=True,
            )

    def check(self) -> None:
        """Raises RunError if one of them has ended."""
        for name, process in self.processes.items():
            if process.poll() is not None:
                lines = (self._folder / f"{name}.log").read_text(errors="replace").strip().splitlines()
                raise RunError(f"testbed: {name} has ended: {lines[-1] if lines else process.returncode}")

    def vsctl(self, *words: str) -> str:
        """Runs ovs-vsctl. Raises RunError."""
        return do("ovs-vsctl", f"--db={self._database}", f"--timeout={PATIENCE_S:.0f}", *words)

    def bridge(
        self, name: str, datapath: int, ports: Sequence[tuple[str, int]], *, controller: Path | None
    ) -> None:
        """Adds a switch with devices as ports, by number.

        It forwards only what `flows` says, and connects to a controller at the socket `controller`.
        Raises RunError.
        """
        words = ["add-br", name, "--", "set", "bridge", name, "datapath_type=netdev", "protocols=OpenFlow13"]
        words += ["fail_mode=secure", f"other-config:datapath-id={datapath:016x}"]
        for device, number in ports:
            words += ["--", "add-port", name, device, "--", "set", "interface", device, f"ofport_request={number}"]
            # Otherwise Open vSwitch removes the queue of the device.
            words += ["--", "set", "port", device, f"qos=@{device}"]
            words += ["--", f"--id=@{device}", "create", "qos", "type=linux-noop"]
        if controller is not None:
            words += ["--", "set-controller", name, f"unix:{controller}"]
            words += ["--", "set", "controller", name, "max_backoff=1000", "connection-mode=out-of-band"]
        self.vsctl(*words)

    def flows(self, name: str, flows: Sequence[str]) -> None:
        """Sets the rules of a switch. Raises RunError."""
        do("ovs-ofctl", "-O", "OpenFlow13", "add-flows", f"{self._folder}/{name}.mgmt", "-", said="\n".join(flows))

    def give_room(self) -> None:
        """Lets all queues together hold more than the send buffer of a socket.

        Open vSwitch sends to all devices through one packet socket, and packets in their queues
        count as that socket's. Its usual buffer, 208 kB, holds 92 full packets, so packets would be
        lost outside every queue. The socket exists once a packet has been sent.
        """
        process = self.processes["ovs-vswitchd"].pid
        handle = os.pidfd_open(process)
        try:
            for entry in os.listdir(f"/proc/{process}/fd"):
                with suppress(OSError):
                    if os.readlink(f"/proc/{process}/fd/{entry}").startswith("socket:"):
                        _give_room(_libc.syscall(PIDFD_GETFD, handle, int(entry), 0))
        finally:
            os.close(handle)


def _first() -> tuple[str, ...]:
    """Returns the start of a command that gives real-time priority, if that is permitted.

    Otherwise a busy machine would delay packets at every switch.
    """
    with suppress(RunError):
        do("chrt", "--fifo", "1", "true")
        return ("chrt", "--fifo", "1")
    return ()


def _give_room(descriptor: int) -> None:
    if descriptor < 0:
        return
    with socket.socket(fileno=descriptor) as one:
        if one.family == socket.AF_PACKET:
            one.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, SEND_BUFFER)


def wait_for(what: Callable[[], bool], otherwise: Callable[[], str], check: Callable[[], None]) -> None:
    """Waits until `what()` is true; meanwhile `check` may raise.

    Raises RunError, which says `otherwise()`.
    """
    end = time.monotonic() + PATIENCE_S
    while not what():
        check()
        if time.monotonic() > end:
            raise RunError(f"testbed: {otherwise()}: waited {PATIENCE_S:.0f} s")
        time.sleep(0.05)
