"""OpenFlow 1.3 port statistics as a source.

os-ken runs in a process of its own, which writes lines of JSON. A process is needed because
os-ken's threads cannot be ended, its settings are global, and it decodes whatever a switch sends.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NotRequired, TypedDict

from headway._native import RunError, UsageError
from headway.netwatch.source import Counters, PortReading, Reading
from headway.netwatch.tls import check_pair
from headway.netwatch.topology import address, is_loopback

if TYPE_CHECKING:
    from headway.netwatch.source import Sink
    from headway.netwatch.topology import OpenFlow, Topology

LARGEST_LINE = 1 << 20
"""The most bytes of a line: a switch of 4,096 ports takes a third of it."""
ENDS_WITHIN_S = 2.0
SILENT_S = 30.0
"""os-ken reports once a period that it is alive. It is ended after silence for this long and for
five periods."""


class Said(TypedDict):
    """A line of os-ken's process about a switch."""

    what: str
    """`ports`, or what happened to the switch."""
    datapath: int
    ports: NotRequired[list[list[int]]]
    """The number of each port, and its counters."""
    asked_s: NotRequired[float]
    took_s: NotRequired[float]


class OpenFlowSource:
    """All OpenFlow switches of a topology that are known."""

    def __init__(self, topology: Topology) -> None:
        """Prepares the source.

        Raises UsageError if switches would connect from beyond loopback without TLS, or if the port
        is taken.
        """
        self._settings, self._period_s = topology.openflow, topology.period_s
        self._names = {
            switch.datapath: switch.name
            for switch in topology.switches.values()
            if switch.known and switch.datapath is not None
        }
        self._process: asyncio.subprocess.Process | None = None
        _check(self._settings)

    @property
    def name(self) -> str:
        """The name in health reports."""
        return f"openflow {self._settings.listen}"

    @property
    def pid(self) -> int | None:
        """Id of the process that os-ken is in."""
        return self._process.pid if self._process else None

    async def run(self, sink: Sink) -> None:
        """Runs until cancelled. Raises RunError if os-ken has ended, or hangs."""
        asked = {
            "listen": list(address(self._settings.listen, "[openflow] listen")),
            "period_s": self._period_s,
            "datapaths": list(self._names),
            "key": self._settings.key,
            "cert": self._settings.cert,
            "ca": self._settings.ca,
        }
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "from headway.netwatch.openflow_app import main; main()", json.dumps(asked)),
            # os-ken ends when this closes, however we end.
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=LARGEST_LINE,
            start_new_session=True,
        )
        self._process = process
        assert process.stdout is not None
        assert process.stderr is not None
        errors = asyncio.create_task(_last_line(process.stderr))
        try:
            async with asyncio.timeout(self._silent_s()) as patience:
                while line := await process.stdout.readline():
                    said = json.loads(line)
                    if said["what"] == "alive":
                        patience.reschedule(asyncio.get_running_loop().time() + self._silent_s())
                    else:
                        self._heard(said, sink)
                await process.wait()
                why = await errors or "it gave no reason"
                raise RunError(f"os-ken has ended ({process.returncode}): {why}")
        except TimeoutError:
            raise RunError(f"os-ken hangs: no sign of life for {self._silent_s():g} s") from None
        except ValueError as error:
            raise RunError(f"os-ken wrote an invalid line: {error}") from None
        finally:
            await _end(process)
            errors.cancel()

    def _silent_s(self) -> float:
        return max(SILENT_S, 5 * self._period_s)

    def _heard(self, said: Said, sink: Sink) -> None:
        # An unknown switch has no name, and is counted.
        name = self._names.get(said["datapath"], "")
        if said["what"] != "ports":
            sink.notice(name, said["what"])
            return
        ports = {str(number): PortReading(Counters(*counters)) for number, *counters in said["ports"]}
        sink.reading(Reading(name, said["asked_s"], ports, said["took_s"]))


def _check(settings: OpenFlow) -> None:
    host, port = address(settings.listen, "[openflow] listen")
    if settings.key is None and not is_loopback(host):
        raise UsageError(
            f"[openflow] listen '{settings.listen}': beyond loopback switches come by TLS; give key, cert and ca"
        )
    for path in (settings.key, settings.cert, settings.ca):
        if path is not None:
            try:
                with open(path, "rb"):
                    pass
            except OSError as error:
                raise UsageError(f"[openflow] {path}: {error.strerror}") from None
    if settings.cert is not None and settings.key is not None:
        check_pair(settings.cert, settings.key, f"[openflow] cert {settings.cert}, key {settings.key}")
    # os-ken would report this in a thread of its own, and go on.
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((host, port))
        except OSError as error:
            raise UsageError(f"[openflow] listen '{settings.listen}': {error.strerror}; give another") from None


async def _last_line(stream: asyncio.StreamReader) -> str:
    """Reads all that is left, so that no writer waits for room. Returns the last line."""
    last = b""
    while data := await stream.read(4096):
        last = (last + data)[-4096:]
    lines = [line for line in last.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else ""


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(ENDS_WITHIN_S):
            await process.wait()
    except (TimeoutError, asyncio.CancelledError) as ended:
        with suppress(ProcessLookupError):
            process.kill()
        if isinstance(ended, asyncio.CancelledError):
            raise
        await process.wait()
