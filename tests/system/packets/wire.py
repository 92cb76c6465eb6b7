"""IPv4 and TCP headers as far as the scripts need them.

See RFC 791, 9293, 2018 (SACK), 7323 (timestamps), 9768 (AE).
"""

import struct
from dataclasses import dataclass

FIN, SYN, RST, PSH, ACK, URG, ECE, CWR, AE = (1 << bit for bit in range(9))

IP = struct.Struct("!BBHHHBBH4s4s")
TCP = struct.Struct("!HHIIBBHHH")
NO_OPERATION, MSS, WINDOW_SCALE, SACK_PERMITTED, SACK, TIMESTAMPS = 1, 2, 3, 4, 5, 8


@dataclass(frozen=True)
class Segment:
    """A segment that the kernel has sent."""

    seq: int
    flags: int
    payload: int
    """The length of the payload in bytes."""
    ecn: int
    """The ECN field of the IP header: 0 not capable, 1 and 2 capable, 3 congestion experienced."""
    source: int
    """The port of the sender."""
    timestamp: int
    """TSval, or 0 without the option."""
    options: frozenset[int]
    """The kinds of the options."""


def parse(packet: bytes) -> Segment | None:
    """Reads a TCP segment over IPv4. Returns None for anything else."""
    if packet[0] >> 4 != 4 or packet[9] != 6:
        return None
    header = (packet[0] & 15) * 4
    source, _, seq, _, offset, flags, *_ = TCP.unpack_from(packet, header)
    flags |= offset << 8 & AE
    end = header + (offset >> 4) * 4
    at, timestamp, kinds = header + TCP.size, 0, set()
    while at < end and packet[at]:
        kind = packet[at]
        kinds.add(kind)
        if kind == TIMESTAMPS:
            (timestamp,) = struct.unpack_from("!I", packet, at + 2)
        at += 1 if kind == NO_OPERATION else packet[at + 1]
    return Segment(seq, flags, len(packet) - end, packet[1] & 3, source, timestamp, frozenset(kinds))


def build(
    source: tuple[bytes, int], to: tuple[bytes, int], seq: int, ack: int, flags: int, window: int, options: bytes
) -> bytes:
    """A segment without payload, with both checksums. An end is an address and a port."""
    options += bytes([NO_OPERATION]) * (-len(options) % 4)
    length = TCP.size + len(options)
    ends = source[0] + to[0]
    offset = length // 4 << 4 | flags >> 8
    segment = TCP.pack(source[1], to[1], seq, ack, offset, flags & 0xFF, window, 0, 0) + options
    total = _checksum(ends + struct.pack("!HH", 6, length) + segment)
    segment = segment[:16] + struct.pack("!H", total) + segment[18:]
    head = IP.pack(0x45, 0, IP.size + length, 0, 0x4000, 64, 6, 0, source[0], to[0])
    return head[:10] + struct.pack("!H", _checksum(head)) + head[12:] + segment


def too_big(router: bytes, source: tuple[bytes, int], to: tuple[bytes, int], seq: int, mtu: int) -> bytes:
    """A router's message to `source` that the segment with `seq` exceeds the MTU (RFC 1191, 4)."""
    head = IP.pack(0x45, 0, 1500, 0, 0x4000, 64, 6, 0, source[0], to[0])
    begun = head + struct.pack("!HHI", source[1], to[1], seq)
    icmp = struct.pack("!BBHHH", 3, 4, 0, 0, mtu) + begun
    icmp = icmp[:2] + struct.pack("!H", _checksum(icmp)) + icmp[4:]
    head = IP.pack(0x45, 0, IP.size + len(icmp), 0, 0, 64, 1, 0, router, source[0])
    return head[:10] + struct.pack("!H", _checksum(head)) + head[12:] + icmp


def syn_options(mss: int, timestamp: tuple[int, int] | None) -> bytes:
    """The options of a SYN-ACK: MSS, a window scale of 10, SACK, and optionally timestamps."""
    options = struct.pack("!BBH", MSS, 4, mss) + bytes((WINDOW_SCALE, 3, 10, SACK_PERMITTED, 2))
    return options + (_timestamps(timestamp) if timestamp else b"")


def ack_options(timestamp: tuple[int, int] | None, blocks: list[tuple[int, int]]) -> bytes:
    """The options of an ACK: TSval and TSecr, and SACK blocks of two sequence numbers each."""
    options = _timestamps(timestamp) if timestamp else b""
    if blocks:
        edges = b"".join(struct.pack("!II", *block) for block in blocks)
        options += bytes((NO_OPERATION, NO_OPERATION, SACK, 2 + len(edges))) + edges
    return options


def _timestamps(values: tuple[int, int]) -> bytes:
    return struct.pack("!BBBBII", NO_OPERATION, NO_OPERATION, TIMESTAMPS, 10, *values)


def _checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
