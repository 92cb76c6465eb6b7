"""One flow of the kernel's TCP over the path of a testbed.

Also what netwatch and headwayd say meanwhile.
"""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from headway.netwatch.client import Client
from headway.netwatch.watch import PathState
from headway.testbed.bed import DESTINATION, Bed

PORT = 5201
BLOCK = bytes(1 << 16)
PATIENCE_S = 60.0
LOOK_S = 0.02
"""How often the smoothed RTT is read."""
TCP_INFO = struct.Struct("=8x24I")
"""The first of linux/tcp.h's struct tcp_info."""
SND_MSS, RTT_US, TOTAL_RETRANSMITTED = 2, 15, 23
PACKET = 1500
"""Bytes of a full packet, which carries `snd_mss` bytes of data."""


class Flow:
    """Sends as much as its controller permits, from the source to the destination."""

    def __init__(self, bed: Bed, controller: str, port: int) -> None:
        """Connects. Raises OSError: the kernel does not have the controller."""
        self.name = controller
        self.received = 0
        """Bytes of data, by now."""
        listener = bed.destination.inside(lambda: socket.create_server((DESTINATION, port)))

        def connect() -> socket.socket:
            sender = socket.socket()
            sender.settimeout(PATIENCE_S)
            sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
            sender.connect((DESTINATION, port))
            return sender

        with listener:
            self._sender = bed.source.inside(connect)
            self._receiver, _ = listener.accept()
        self._threads = [threading.Thread(target=work) for work in (self._send, self._receive)]
        for thread in self._threads:
            thread.start()

    def info(self) -> tuple[int, ...]:
        """TCP_INFO's numbers, from `rto` on."""
        return TCP_INFO.unpack(self._sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO.size))

    def measure(self, seconds: float) -> dict[str, float]:
        """What came of it in this many seconds from now on, headers included, and its RTT."""
        begun, received, before = time.monotonic(), self.received, self.info()
        rtts = []
        while (elapsed := time.monotonic() - begun) < seconds:
            rtts.append(self.info()[RTT_US])
            time.sleep(LOOK_S)
        after = self.info()
        sent = (self.received - received) * PACKET / after[SND_MSS]
        return {
            "throughput_mbps": sent * 8e-6 / elapsed,
            "rtt_ms": sum(rtts) / len(rtts) / 1e3,
            "retransmitted": after[TOTAL_RETRANSMITTED] - before[TOTAL_RETRANSMITTED],
        }

    def close(self) -> None:
        """Ends both ends."""
        for end in (self._sender, self._receiver):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._sender.close()
        self._receiver.close()

    def _send(self) -> None:
        with suppress(OSError):
            while True:
                self._sender.sendall(BLOCK)

    def _receive(self) -> None:
        with suppress(OSError):
            while data := self._receiver.recv(1 << 16):
                self.received += len(data)


@contextmanager
def flow(bed: Bed, controller: str, port: int = PORT) -> Iterator[Flow]:
    """One that sends meanwhile."""
    one = Flow(bed, controller, port)
    try:
        yield one
    finally:
        one.close()


@contextmanager
def listening(bed: Bed) -> Iterator[list[tuple[float, PathState]]]:
    """What netwatch says of the path meanwhile, and when it came, by `time.monotonic`."""
    client, heard = Client(bed.url), list[tuple[float, PathState]]()

    def listen() -> None:
        for snapshot in client.stream():
            heard.append((time.monotonic(), snapshot.paths[0]))

    thread = threading.Thread(target=bed.source.inside, args=(listen,))
    thread.start()
    try:
        yield heard
    finally:
        client.close()
        thread.join()
