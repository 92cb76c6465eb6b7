"""Small programs that send and receive, for tests of links.

Usage: python traffic.py NAME ARGUMENT...
"""

import json
import os
import socket
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path

PORT = 5201
BLOCK = bytes(1 << 16)
CONTROLLER = b"cubic"
"""The controller, because the machine's default varies."""
SO_RCVBUFFORCE = 33
"""A value of asm-generic/socket.h."""
BUFFER = 8 << 20
"""A buffer so large that a receiver that waits for a CPU loses nothing."""
RECVTOS = {socket.AF_INET: (socket.IPPROTO_IP, 13), socket.AF_INET6: (socket.IPPROTO_IPV6, 66)}
TOS = {socket.AF_INET: (socket.IPPROTO_IP, socket.IP_TOS), socket.AF_INET6: (socket.IPPROTO_IPV6, 67)}


def family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ping(address: str, count: str) -> None:
    """Prints the round trips of successive ICMP echoes in ms, as a JSON list."""
    six = family(address) == socket.AF_INET6
    protocol = socket.getprotobyname("ipv6-icmp" if six else "icmp")
    request, reply, header = (128, 129, 0) if six else (8, 0, 20)
    own = os.getpid() & 0xFFFF
    times = []
    with socket.socket(family(address), socket.SOCK_RAW, protocol) as s:
        s.settimeout(60)
        for number in range(int(count)):
            body = struct.pack("!HH", own, number) + bytes(24)
            head = struct.pack("!BBH", request, 0, 0)
            if not six:  # For IPv6 the kernel computes the checksum.
                head = struct.pack("!BBH", request, 0, checksum(head + body))
            begin = time.monotonic()
            s.sendto(head + body, (address, 0))
            while True:
                came = s.recv(2048)[header:]
                if came[0] == reply and came[4:8] == body[:4]:
                    break
            times.append((time.monotonic() - begin) * 1e3)
            time.sleep(0.002)
    print(json.dumps(times))


def serve() -> None:
    """A TCP server.

    After `r` it reads, and answers with the number of bytes. After `s` and a digit it sends for
    that many seconds.
    """
    listener = socket.create_server(("", PORT), family=socket.AF_INET6, dualstack_ipv6=True, backlog=64)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, CONTROLLER)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            order = connection.recv(2, socket.MSG_WAITALL)
            if order[:1] == b"r":
                connection.sendall(f"{drain(connection)}\n".encode())
            else:
                fill(connection, float(order[1:]))
            os._exit(0)
        connection.close()


def fill(connection: socket.socket, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        connection.sendall(BLOCK)
    connection.shutdown(socket.SHUT_WR)


def drain(connection: socket.socket) -> int:
    """The number of bytes until the other end stops sending."""
    total = 0
    while count := len(connection.recv(1 << 16)):
        total += count
    return total


def mbps(total: int, begin: float) -> float:
    """The rate for this number of bytes since that moment."""
    return total * 8e-6 / (time.monotonic() - begin)


def connect(address: str) -> socket.socket:
    """Connects to a server that may be about to start."""
    end = time.monotonic() + 60
    while True:
        try:
            connection = socket.create_connection((address, PORT), timeout=60)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, CONTROLLER)
            return connection
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def send(address: str, seconds: str) -> None:
    """Prints the rate in Mbit/s at which a server has received.

    Time counts from before the first byte was sent.
    """
    with connect(address) as connection:
        begin = time.monotonic()
        connection.sendall(b"r0")
        fill(connection, float(seconds))
        print(mbps(int(connection.makefile().readline()), begin))


def receive(address: str, seconds: str) -> None:
    """Prints the rate in Mbit/s at which a server's bytes arrived.

    Time counts from before the request for them.
    """
    with connect(address) as connection:
        begin = time.monotonic()
        connection.sendall(f"s{seconds}".encode())
        print(mbps(drain(connection), begin))


def burst(address: str, count: str, ecn: str, gap_us: str, path: str) -> None:
    """Sends numbered datagrams with this ECN field to `collect`, and prints how many.

    Some more follow, one after the other, until `collect` reports that the last one arrived.
    Everything sent before it has arrived by then, or is lost.
    """
    with socket.socket(family(address), socket.SOCK_DGRAM) as s:
        s.setsockopt(*TOS[family(address)], int(ecn))

        def send_one(number: int) -> None:
            s.sendto(struct.pack("!I", number) + bytes(996), (address, PORT))

        for number in range(int(count)):
            send_one(number)
            end = time.monotonic() + int(gap_us) * 1e-6
            while time.monotonic() < end:
                pass
        sent = int(count)
        while json.loads(Path(path).read_text())["last"] != sent - 1 or sent == int(count):
            send_one(sent)
            sent += 1
            end = time.monotonic() + 1
            while json.loads(Path(path).read_text())["last"] != sent - 1 and time.monotonic() < end:
                time.sleep(0.05)
    print(sent)


def collect(path: str) -> None:
    """Writes, whenever no packet arrives for a while, the number of packets so far.

    It also writes the number of CE marks, and the last packet's number.
    """
    came = marked = 0
    last = -1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        with suppress(PermissionError):
            s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
        s.setsockopt(*RECVTOS[socket.AF_INET], 1)
        s.bind(("", PORT))
        s.settimeout(0.2)
        while True:
            # The program may be ended at any moment.
            draft = Path(path + ".draft")
            draft.write_text(json.dumps({"came": came, "marked": marked, "last": last}))
            draft.rename(path)
            with suppress(TimeoutError):
                while True:
                    data, extra, *_ = s.recvmsg(2048, 64)
                    (last,) = struct.unpack_from("!I", data)
                    came += 1
                    marked += extra[0][2][0] & 3 == 3


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
