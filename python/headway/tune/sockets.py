"""Statistics of real TCP sockets from the kernel's sock_diag.

It reads netlink's binary structures, and no program's text. See sock_diag(7), linux/inet_diag.h,
linux/tcp.h. A dump walks the machine's whole table of connections, in some milliseconds; a request
for a known connection by its ends takes some microseconds.
"""

from __future__ import annotations

import errno
import math
import socket
import struct
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, Protocol

from headway._native import RunError
from headway.tune.stats import FlowStats

if TYPE_CHECKING:
    from collections.abc import Iterator

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
REQUEST, DUMP = 0x1, 0x100 | 0x200
"""The flags NLM_F_REQUEST, and NLM_F_ROOT | NLM_F_MATCH."""
NLMSG_ERROR, NLMSG_DONE = 2, 3
TCP_ESTABLISHED = 1
INET_DIAG_INFO, INET_DIAG_VEGASINFO, INET_DIAG_CONG, INET_DIAG_BBRINFO = 2, 3, 4, 16
EXTENSIONS = sum(1 << (kind - 1) for kind in (INET_DIAG_INFO, INET_DIAG_VEGASINFO, INET_DIAG_CONG))
"""The requested extensions. BBR's is requested by the bit of Vegas', which has room in the
request."""
PATIENCE_S = 1
TCPI_OPT_TIMESTAMPS = 1

HEADER = struct.Struct("=IHHII")
ASKED = struct.Struct("=BBBBI")
"""struct inet_diag_req_v2 up to the socket's id."""
MESSAGE = struct.Struct("=BBBB2s2s16s16sII")
"""struct inet_diag_msg up to the cookie."""
MESSAGE_BYTES = 72
ID = slice(4, 52)
"""struct inet_diag_sockid in such a message, which names a socket."""
LOOK_S = 0.25
"""Time in s between two searches for new connections."""
ATTRIBUTE = struct.Struct("=HH")
TCP_INFO = struct.Struct("=8B24I4Q6I4Q2I")
"""struct tcp_info up to delivered_ce (Linux 4.18)."""
BBR_INFO = struct.Struct("=5I")


class TcpInfo(NamedTuple):
    """The fields of struct tcp_info that are used, in its units."""

    options: int
    snd_mss: int
    unacked: int
    sacked: int
    lost: int
    retrans: int
    rtt_us: int
    snd_cwnd: int
    total_retrans: int
    pacing_rate: int
    bytes_acked: int
    min_rtt_us: int
    delivery_rate: int
    delivered: int


class BbrInfo(NamedTuple):
    """struct tcp_bbr_info."""

    bw: int
    """Bandwidth in payload bytes a second."""
    min_rtt_us: int
    pacing_gain: float
    cwnd_gain: float


class Socket(NamedTuple):
    """A connection, as sock_diag has it."""

    flow: str
    id: bytes
    """The bytes of struct inet_diag_sockid."""
    is_ipv6: bool
    controller: str
    info: TcpInfo
    bbr: BbrInfo | None


def tcp_info(data: bytes) -> TcpInfo | None:
    """Decodes struct tcp_info, also from the socket option TCP_INFO.

    Returns None if the kernel's is older than Linux 4.18.
    """
    if len(data) < TCP_INFO.size:
        return None
    f = TCP_INFO.unpack_from(data)
    return TcpInfo(
        options=f[5],
        snd_mss=f[10],
        unacked=f[12],
        sacked=f[13],
        lost=f[14],
        retrans=f[15],
        rtt_us=f[23],
        snd_cwnd=f[26],
        total_retrans=f[31],
        pacing_rate=f[32],
        bytes_acked=f[34],
        min_rtt_us=f[39],
        delivery_rate=f[42],
        delivered=f[46],
    )


def bbr_info(data: bytes) -> BbrInfo | None:
    """Decodes struct tcp_bbr_info, also from the socket option TCP_CC_INFO.

    Returns None if it is another struct.
    """
    if len(data) < BBR_INFO.size:
        return None
    low, high, min_rtt_us, pacing_gain, cwnd_gain = BBR_INFO.unpack_from(data)
    # The kernel's gains are in units of 1/256.
    return BbrInfo(low | high << 32, min_rtt_us, pacing_gain / 256, cwnd_gain / 256)


def parse(data: bytes) -> Socket | None:
    """Decodes an inet_diag_msg with its attributes.

    Returns None if it is not TCP's or has no statistics.
    """
    if len(data) < MESSAGE_BYTES:
        return None
    family, _, _, _, sport, dport, src, dst, _, _ = MESSAGE.unpack_from(data)
    if family not in (socket.AF_INET, socket.AF_INET6):
        return None
    found = dict(_attributes(data[MESSAGE_BYTES:]))
    info = tcp_info(found.get(INET_DIAG_INFO, b""))
    if info is None:
        return None
    flow = f"{_end(family, src, sport)}-{_end(family, dst, dport)}"
    controller = found.get(INET_DIAG_CONG, b"").rstrip(b"\0").decode(errors="replace")
    bbr = bbr_info(found.get(INET_DIAG_BBRINFO, b""))
    return Socket(flow, data[ID], family == socket.AF_INET6, controller, info, bbr)


def _end(family: int, address: bytes, port: bytes) -> str:
    number = int.from_bytes(port, "big")
    if family == socket.AF_INET:
        return f"{socket.inet_ntop(family, address[:4])}:{number}"
    text = socket.inet_ntop(family, address)
    # An IPv4 flow of a socket for both versions of IP.
    return f"{text.removeprefix('::ffff:')}:{number}" if "." in text else f"[{text}]:{number}"


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + ATTRIBUTE.size <= len(data):
        length, kind = ATTRIBUTE.unpack_from(data, at)
        if not ATTRIBUTE.size <= length <= len(data) - at:
            return
        yield kind & 0x3FFF, data[at + ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3


def stats(one: Socket, time_s: float) -> FlowStats:
    """Returns statistics in the units of features; rates include headers, as on the wire."""
    info = one.info
    headers = (40 if one.is_ipv6 else 20) + (32 if info.options & TCPI_OPT_TIMESTAMPS else 20)
    payload = max(info.snd_mss, 1)
    wire = (payload + headers) / payload
    bbr = one.bbr if one.bbr and one.bbr.pacing_gain else None
    return FlowStats(
        flow=one.flow,
        time_s=time_s,
        rtt_ms=info.rtt_us * 1e-3,
        srtt_ms=info.rtt_us * 1e-3,
        min_rtt_ms=info.min_rtt_us * 1e-3,
        delivery_rate_mbps=info.delivery_rate * 8e-6 * wire,
        # Linux writes an unlimited rate as all ones.
        pacing_rate_mbps=0.0 if info.pacing_rate == 2**64 - 1 else info.pacing_rate * 8e-6,
        cwnd_packets=info.snd_cwnd,
        in_flight_packets=max(0, info.unacked - info.sacked - info.lost + info.retrans),
        acked_bytes=info.bytes_acked,
        delivered_packets=info.delivered,
        lost_packets=info.total_retrans,
        retransmitted_packets=info.total_retrans,
        mss_bytes=payload + headers,
        payload_bytes=payload,
        btlbw_mbps=bbr.bw * 8e-6 * wire if bbr else None,
        rtprop_ms=bbr.min_rtt_us * 1e-3 if bbr else None,
        pacing_gain=bbr.pacing_gain if bbr else None,
        cwnd_gain=bbr.cwnd_gain if bbr else None,
    )


class Sockets(Protocol):
    """The namespaces in which a monitor looks for sockets."""

    def diags(self) -> list[Diag]:
        """Returns the sock_diag of each namespace that is looked at now."""

    def close(self) -> None:
        """Closes them."""


class SocketMonitor:
    """Samples the established connections that have a controller."""

    def __init__(
        self,
        controller: str = "headway_bbr",
        ports: frozenset[int] = frozenset(),
        where: Sockets | None = None,
    ) -> None:
        """Looks for sockets with this controller, and with one of `ports` at either end.

        Args:
            controller: The controller's name in the kernel.
            ports: None for all.
            where: The namespaces. Default: this one, which needs no privilege.

        Raises:
            RunError: This kernel has no sock_diag.
        """
        self.controller = controller
        self._ports = ports
        self._where = where or Here()
        self._known: dict[Diag, list[Socket]] = {}
        """The known sockets of each namespace, as they were seen last."""
        self._looked = -math.inf

    def sample(self) -> list[FlowStats]:
        """Returns the present flows, without those that cannot be told from one another.

        Raises RunError.
        """
        looks = time.monotonic() - self._looked >= LOOK_S
        if looks:
            self._looked = time.monotonic()
        found: list[FlowStats] = []
        known: dict[Diag, list[Socket]] = {}
        for diag in self._where.diags():
            known[diag] = self._look(diag) if looks else self._ask(diag)
            now = time.monotonic()
            # A connection that only receives has no RTT.
            found += [stats(one, now) for one in known[diag] if one.info.rtt_us]
        self._known = known
        # Flows in different namespaces may have the same addresses.
        times = Counter(one.flow for one in found)
        return [one for one in found if times[one.flow] == 1]

    def _look(self, diag: Diag) -> list[Socket]:
        families = (socket.AF_INET, socket.AF_INET6)
        return [one for family in families for one in diag.dump(family) if self._wants(one)]

    def _ask(self, diag: Diag) -> list[Socket]:
        """Returns the known sockets as they are now; a socket's controller may have changed."""
        asked = (diag.one(known) for known in self._known.get(diag, []))
        return [one for one in asked if one and self._wants(one)]

    def close(self) -> None:
        """Closes its sockets."""
        self._where.close()

    def _wants(self, one: Socket) -> bool:
        if one.controller != self.controller:
            return False
        ends = {int(end.rpartition(":")[2]) for end in one.flow.rsplit("-", 1)}
        return not self._ports or bool(ends & self._ports)


class Here:
    """This network namespace."""

    def __init__(self) -> None:
        """Opens sock_diag. Raises RunError without it."""
        self._diag = Diag()

    def diags(self) -> list[Diag]:
        """Returns only its own."""
        return [self._diag]

    def close(self) -> None:
        """Closes it."""
        self._diag.close()


class Diag:
    """sock_diag of the network namespace of the thread that makes it.

    Afterwards any thread may use it.
    """

    def __init__(self) -> None:
        """Opens the netlink socket. Raises RunError without sock_diag."""
        try:
            self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG)
        except (OSError, AttributeError) as error:
            raise RunError(f"no statistics of sockets: {error}; Linux with sock_diag is required") from None
        self._netlink.settimeout(PATIENCE_S)
        self._sequence = 0

    def close(self) -> None:
        """Closes the netlink socket."""
        self._netlink.close()

    def dump(self, family: int) -> list[Socket]:
        """Returns the established connections of a family. Raises RunError."""
        found: list[Socket] = []
        try:
            self._send(family, DUMP, bytes(48))
            for kind, body in self._answers():
                if kind == NLMSG_DONE:
                    break
                if one := parse(body):
                    found.append(one)
        except OSError as error:
            raise _failed(error) from None
        return found

    def one(self, known: Socket) -> Socket | None:
        """Returns a connection as it is now, None if it has ended. Raises RunError."""
        try:
            self._send(socket.AF_INET6 if known.is_ipv6 else socket.AF_INET, 0, known.id)
            _, body = next(self._answers())
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ESTALE):
                return None
            raise _failed(error) from None
        return parse(body) if body[1:2] == bytes([TCP_ESTABLISHED]) else None

    def _send(self, family: int, flags: int, which: bytes) -> None:
        self._sequence += 1
        body = ASKED.pack(family, socket.IPPROTO_TCP, EXTENSIONS, 0, 1 << TCP_ESTABLISHED) + which
        size = HEADER.size + len(body)
        self._netlink.send(HEADER.pack(size, SOCK_DIAG_BY_FAMILY, REQUEST | flags, self._sequence, 0) + body)

    def _answers(self) -> Iterator[tuple[int, bytes]]:
        """Yields kind and body of the answers to the last request. Raises OSError."""
        while True:
            data = self._netlink.recv(1 << 18)
            at = 0
            while at + HEADER.size <= len(data):
                length, kind, _, sequence, _ = HEADER.unpack_from(data, at)
                if length < HEADER.size or at + length > len(data):
                    raise OSError(errno.EBADMSG, "a malformed message from the kernel")
                body = data[at + HEADER.size : at + length]
                at += (length + 3) & ~3
                # An answer to an earlier request that was given up.
                if sequence != self._sequence:
                    continue
                if kind == NLMSG_ERROR:
                    code = -int.from_bytes(body[:4], "little", signed=True)
                    raise OSError(code, errno.errorcode.get(code, "an error"))
                if kind in (SOCK_DIAG_BY_FAMILY, NLMSG_DONE):
                    yield kind, body


def _failed(error: OSError) -> RunError:
    return RunError(f"sock_diag: {error.strerror or error}; tried again at the next sample")
