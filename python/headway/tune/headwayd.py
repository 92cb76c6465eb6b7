"""Flows of `headwayd run --controllers headway_bbr` (docs/kernel.md).

BBR's variables come from headwayd's status, because the kernel has no INET_DIAG_BBRINFO of a BPF
controller. Windows are set through headwayd.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway._native import RunError
from headway.tune.sockets import SocketMonitor
from headway.tune.tuner import ALL, DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headway.tune.sockets import Sockets
    from headway.tune.stats import FlowStats

PATH = "/run/headway/headwayd.sock"
PATIENCE_S = 2.0
LARGEST = 64 << 20
OLD_S = 2.0
"""A status older than this in s is not used."""
LOOK_S = 0.25
"""The tuner uses headwayd's list of flows for this time in s."""

Reported = Mapping[str, object]
"""A flow as headwayd reports it, not checked."""


def default_path() -> str:
    """Returns the path of headwayd's control socket: HEADWAYD_SOCKET, else the usual place."""
    return os.environ.get("HEADWAYD_SOCKET", PATH)


def ask(path: str, words: str, patience_s: float = PATIENCE_S) -> dict[str, Any]:
    """Sends a word, and returns a line of JSON, within `patience_s` in all.

    Raises RunError, one line.
    """
    until = time.monotonic() + patience_s
    parts: list[bytes] = []
    try:
        with socket.socket(socket.AF_UNIX) as daemon:
            daemon.settimeout(patience_s)
            daemon.connect(path)
            daemon.sendall(f"{words}\n".encode())
            daemon.shutdown(socket.SHUT_WR)
            while sum(map(len, parts)) < LARGEST:
                daemon.settimeout(max(until - time.monotonic(), 1e-3))
                part = daemon.recv(1 << 20)
                if not part:
                    break
                parts.append(part)
        answer = json.loads(b"".join(parts))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise RunError(
            f"no headwayd answers at {path}: {why}; start one: headwayd run --controllers headway_bbr"
        ) from None
    if not isinstance(answer, dict) or "error" in answer:
        raise RunError(f"headwayd: {answer.get('error') if isinstance(answer, dict) else 'no answer'}")
    return answer


class HeadwaydStatus:
    """headwayd's flows. A thread of its own asks, so that a hanging one delays nothing."""

    def __init__(self, path: str, every_s: float = 0.1) -> None:
        """Asks at `path` every `every_s`."""
        self._path, self._every_s = path, every_s
        self._flows: list[Reported] = []
        self._at = -OLD_S
        self._ended = threading.Event()
        self.failures = 0
        """Number of requests without an answer."""
        self._thread = threading.Thread(target=self._run, name="headwayd", daemon=True)
        self._thread.start()

    def flows(self) -> list[Reported]:
        """Returns the flows of its last answer; none if that is too old."""
        return self._flows if time.monotonic() - self._at < OLD_S else []

    def close(self) -> None:
        """Ends the thread."""
        self._ended.set()
        self._thread.join(PATIENCE_S + 1)

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                flows = ask(self._path, "status").get("flows", [])
                self._flows, self._at = [flow for flow in flows if isinstance(flow, dict)], time.monotonic()
            except RunError:
                self.failures += 1
            self._ended.wait(self._every_s)


class Known:
    """headwayd's flows, found by the ids of sockets.

    They are found by both ends if headwayd reports both, else by the remote one.
    """

    def __init__(self, flows: Iterable[Reported] = ()) -> None:
        """Takes one answer. Flows that cannot be told from one another are left out."""
        flows = list(flows)
        ends = Counter(map(_ends, flows))
        remotes = Counter(map(_remote, flows))
        # Flows in different namespaces may have the same addresses.
        self._by_ends = {flow: one for one in flows if "local" in one and ends[flow := _ends(one)] == 1}
        self._by_remote = {end: one for one in flows if "local" not in one and remotes[end := _remote(one)] == 1}

    def find(self, flow: str) -> Reported | None:
        """Returns the flow of this id."""
        return self._by_ends.get(flow) or self._by_remote.get(_remote_of(flow))


def matched(flows: list[Reported], ids: list[str]) -> dict[str, Reported]:
    """Returns the daemon's flows by the ids of sockets.

    A flow of which the daemon reports only the remote end is found only if one socket has that end.
    """
    known = Known(flows)
    sockets = Counter(map(_remote_of, ids))
    found = {flow: one for flow in ids if (one := known.find(flow)) is not None}
    return {flow: one for flow, one in found.items() if "local" in one or sockets[_remote_of(flow)] == 1}


def _remote_of(flow: str) -> str:
    return flow.rsplit("-", 1)[1] if "-" in flow else ""


def _remote(one: Reported) -> str:
    return _plain(str(one.get("remote", "")))


def _ends(one: Reported) -> str:
    return f"{_plain(str(one.get('local', '')))}-{_remote(one)}"


def _plain(address: str) -> str:
    """Returns an IPv4 address that is mapped into IPv6 as IPv4."""
    return address.replace("[::ffff:", "").replace("]", "") if address.startswith("[::ffff:") else address


def with_bbr(stats: FlowStats, reported: Reported) -> FlowStats:
    """Returns the flow with headwayd's BBR variables and its count of lost packets.

    TCP_INFO does not have that count.
    """

    def number(key: str) -> float | None:
        value = reported.get(key)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    lost = number("lost_packets")
    return replace(
        stats,
        btlbw_mbps=number("btlbw_mbps"),
        rtprop_ms=number("rtprop_ms"),
        pacing_gain=number("pacing_gain"),
        cwnd_gain=number("cwnd_gain"),
        lost_packets=stats.lost_packets if lost is None else int(lost),
    )


class HeadwaydMonitor:
    """Samples the sockets of `headway_bbr`, with BBR's variables from headwayd."""

    def __init__(
        self,
        path: str,
        controller: str = "headway_bbr",
        ports: frozenset[int] = frozenset(),
        every_s: float = 0.1,
        where: Sockets | None = None,
    ) -> None:
        """Starts asking headwayd every `every_s`. Raises RunError without sock_diag."""
        self.controller = controller
        self._sockets = SocketMonitor(controller, ports, where)
        self.status = HeadwaydStatus(path, every_s)
        self._told: set[str] = set()
        self.unmatched = 0
        """Number of samples of flows that headwayd does not report, or whose socket is
        ambiguous."""

    def sample(self) -> list[FlowStats]:
        """Returns the present flows that headwayd has reported. Raises RunError."""
        sockets = self._sockets.sample()
        reported = matched(self.status.flows(), [one.flow for one in sockets])
        self.unmatched += len(sockets) - len(reported)
        # A flow's count of lost packets stays headwayd's once it is, because a counter must not
        # fall.
        self._told = {one.flow for one in sockets if one.flow in reported or one.flow in self._told}
        return [
            with_bbr(one, reported[one.flow]) if one.flow in reported else one
            for one in sockets
            if one.flow in reported or one.flow not in self._told
        ]

    def close(self) -> None:
        """Closes both."""
        self.status.close()
        self._sockets.close()


class HeadwaydTuner:
    """Sets BBR's windows as `headwayd set` does."""

    parameters = tuple(DEFAULTS["bbr"])

    def __init__(self, path: str) -> None:
        """Uses the headwayd at `path`."""
        self._path = path
        self._known = Known()
        self._at = -OLD_S

    def apply(self, flow: str, settings: Mapping[str, float]) -> bool:
        """Sets these parameters of a flow, or of all. Raises RunError."""
        words = " ".join(f"{name}={_value(name, value)}" for name, value in settings.items())
        if flow == ALL:
            ask(self._path, f"set all {words}")
            return True
        # One list serves all flows of an answer.
        if time.monotonic() - self._at > LOOK_S:
            self._known, self._at = Known(ask(self._path, "status").get("flows", [])), time.monotonic()
        known = self._known.find(flow)
        return known is not None and bool(ask(self._path, f"set {known.get('flow', '')} {words}").get("flows"))

    def close(self) -> None:
        """Does nothing, because it holds nothing."""


def _value(name: str, value: float) -> str:
    """Returns a value in a parameter's format: whole rounds, or times down to microseconds."""
    return f"{round(value)}" if name == "btlbw_window" else f"{round(value * 1e6)}us"


def is_there(path: str) -> bool:
    """Is there a control socket at `path`?"""
    return Path(path).is_socket()
