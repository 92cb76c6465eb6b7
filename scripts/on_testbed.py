"""Runs one flow of the kernel's TCP over the path of a testbed.

It also reads the reports of netwatch and headwayd meanwhile.
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
"""The interval of reading the smoothed RTT."""
TCP_INFO = struct.Struct("=8x24I")
"""The format of the first fields of struct tcp_info in linux/tcp.h."""
SND_MSS, RTT_US, TOTAL_RETRANSMITTED = 2, 15, 23
PACKET = 1500
"""Bytes of a full packet, which carries `snd_mss` bytes of data."""


class Flow:
    """A flow from the source to the destination that sends as much as its controller permits."""

    def __init__(self, bed: Bed, controller: str, port: int) -> None:
        """Connects. Raises OSError if the kernel does not have the controller."""
        self.name = controller
        self.received = 0
        """Bytes of data received so far."""
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
        """The numbers of TCP_INFO, from `rto` on."""
        return TCP_INFO.unpack(self._sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO.size))

    def measure(self, seconds: float) -> dict[str, float]:
        """The throughput over this many seconds from now on, with headers, and the RTT."""
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
        """Closes both sockets."""
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
    """Runs a flow that sends in this context."""
    one = Flow(bed, controller, port)
    try:
        yield one
    finally:
        one.close()


@contextmanager
def listening(bed: Bed) -> Iterator[list[tuple[float, PathState]]]:
    """The reports of netwatch on the path, with their times by `time.monotonic`."""
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
