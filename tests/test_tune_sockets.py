"""Statistics of real sockets, compared with the sockets themselves and pyroute2.

It also tests those of headwayd's flows.
"""

import json
import re
import socket
import struct
import sys
import threading
import time
from dataclasses import replace

import pytest

import needs
from headway._native import RunError
from headway.tune import headwayd, namespaces, sockets
from headway.tune.headwayd import HeadwaydMonitor, HeadwaydTuner, matched
from headway.tune.namespaces import Namespaces
from headway.tune.sockets import SocketMonitor
from test_tune_robust import GOOD

TCP_CC_INFO = 26
"""Values of linux/tcp.h."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


def info_of(one):
    return sockets.tcp_info(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512))


def id_of(one):
    ends = [
        f"[{end[0]}]:{end[1]}" if ":" in end[0] else f"{end[0]}:{end[1]}"
        for end in (one.getsockname(), one.getpeername())
    ]
    return "-".join(ends)


@pytest.fixture(params=["127.0.0.1", "::1"])
def flow(request):
    """A loopback connection over the kernel's BBR that has sent 3 MB and is idle now."""
    with connection(request.param) as one:
        yield one


class connection:  # noqa: N801
    def __init__(self, address, controller=b"bbr"):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        try:
            self.listener = socket.create_server((address, 0), family=family)
        except OSError as error:
            if family == socket.AF_INET:
                raise
            needs.skip("ipv6", f"no IPv6 here: {error.strerror}")
        self.sender = socket.socket(family)
        try:
            self.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller)
        except OSError:
            needs.skip("bbr", "this kernel has no BBR: modprobe tcp_bbr")
        self.sender.connect(self.listener.getsockname())
        self.receiver, _ = self.listener.accept()

    def __enter__(self):
        reader = threading.Thread(target=self.read, daemon=True)
        reader.start()
        for _ in range(300):
            self.sender.sendall(bytes(10_000))
        until = time.monotonic() + 60
        while info_of(self.sender).bytes_acked < 3_000_000 and time.monotonic() < until:
            time.sleep(0.01)
        return self.sender

    def read(self):
        try:
            while self.receiver.recv(1 << 16):
                pass
        except OSError:
            pass

    def __exit__(self, *_):
        for one in (self.sender, self.receiver, self.listener):
            one.close()


def test_decoded_values_match_those_of_the_socket(flow):
    monitor = SocketMonitor("bbr", frozenset({flow.getsockname()[1]}))
    began = time.monotonic()
    (one,) = [stats for stats in monitor.sample() if stats.flow == id_of(flow)]
    monitor.close()
    info = info_of(flow)
    bbr = sockets.bbr_info(flow.getsockopt(socket.IPPROTO_TCP, TCP_CC_INFO, 64))
    headers = 72 if ":" in flow.getsockname()[0] else 52
    wire = (info.snd_mss + headers) / info.snd_mss
    assert one.acked_bytes == info.bytes_acked >= 3_000_000
    assert (one.rtt_ms, one.min_rtt_ms) == pytest.approx((info.rtt_us / 1e3, info.min_rtt_us / 1e3))
    assert (one.cwnd_packets, one.in_flight_packets) == (info.snd_cwnd, 0)
    assert (one.delivered_packets, one.retransmitted_packets) == (info.delivered, info.total_retrans)
    assert (one.mss_bytes, one.payload_bytes) == (info.snd_mss + headers, info.snd_mss)
    assert one.pacing_rate_mbps == pytest.approx(info.pacing_rate * 8e-6)
    assert one.delivery_rate_mbps == pytest.approx(info.delivery_rate * 8e-6 * wire)
    assert one.btlbw_mbps == pytest.approx(bbr.bw * 8e-6 * wire)
    assert one.rtprop_ms == pytest.approx(bbr.min_rtt_us / 1e3)
    assert (one.pacing_gain, one.cwnd_gain) == (bbr.pacing_gain, bbr.cwnd_gain)
    # The gains are BBR's own: 2/ln 2 in start-up, its inverse while it drains, then around 1
    # (tcp_bbr.c).
    assert 0.3 < one.pacing_gain < 2.9
    assert one.cwnd_gain == pytest.approx(2.887, abs=0.01) or one.cwnd_gain == pytest.approx(2.0)
    assert began <= one.time_s <= time.monotonic()


def test_decoded_values_match_those_of_pyroute2():
    from pyroute2 import DiagSocket

    with connection("127.0.0.1") as flow:
        port = flow.getsockname()[1]
        with DiagSocket() as outside:
            outside.bind()
            found = outside.get_sock_stats(family=socket.AF_INET, states=2, extensions=sockets.EXTENSIONS)
            (theirs,) = [one for one in found if one["idiag_sport"] == port]
        diag = sockets.Diag()
        (ours,) = [one for one in diag.dump(socket.AF_INET) if one.flow == id_of(flow)]
        diag.close()
    info, bbr = theirs.get_attr("INET_DIAG_INFO"), theirs.get_attr("INET_DIAG_BBRINFO")
    assert ours.controller == theirs.get_attr("INET_DIAG_CONG") == "bbr"
    for name, key in (("snd_mss",) * 2, ("rtt_us", "rtt"), ("snd_cwnd",) * 2, ("total_retrans",) * 2):
        assert getattr(ours.info, name) == info[f"tcpi_{key}"]
    for name, key in (
        ("pacing_rate",) * 2,
        ("bytes_acked",) * 2,
        ("min_rtt_us", "min_rtt"),
        ("delivery_rate",) * 2,
    ):
        assert getattr(ours.info, name) == info[f"tcpi_{key}"]
    assert ours.info.delivered == info["tcpi_delivered"]
    assert ours.bbr.bw == bbr["bbr_bw_lo"] | bbr["bbr_bw_hi"] << 32
    assert ours.bbr.pacing_gain * 256 == bbr["bbr_pacing_gain"]


def test_other_controllers_and_ports_are_left_out(flow):
    port = flow.getsockname()[1]
    for controller, ports in (("cubic", frozenset({port})), ("bbr", frozenset({1}))):
        monitor = SocketMonitor(controller, ports)
        assert id_of(flow) not in [one.flow for one in monitor.sample()]
        monitor.close()


@pytest.mark.usefixtures("flow")
@pytest.mark.parametrize("cut", [0, 10, 71, 72, 80, 300])
def test_truncated_data_of_the_kernel_are_ignored(cut):
    assert sockets.parse(bytes([socket.AF_INET]) * cut) is None
    assert sockets.tcp_info(b"\0" * 100) is None, "before Linux 4.18 it has no delivered"
    assert sockets.bbr_info(b"") is None


def test_an_attribute_with_an_impossible_length_ends_the_list():
    for length in (0, 3, 9999):
        assert list(sockets._attributes(struct.pack("=HH", 6, 4) + b"ab\0\0" + struct.pack("=HH", length, 2))) == [
            (4, b"ab")
        ]


class Daemon:
    """A stand-in for headwayd: it reads a word, and answers with a line of JSON."""

    def __init__(self, path):
        self.path, self.flows, self.asked, self.hangs = path, [], [], False
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.hangs:
                continue
            with client:
                word = client.makefile().read().strip()
                self.asked.append(word)
                client.sendall(json.dumps(self.answer(word)).encode() + b"\n")

    def answer(self, word):
        if word == "status":
            return {"schema": 1, "flows": self.flows}
        found = re.fullmatch(r"set (all|\d+)( \w+=\w+)+", word)
        known = found and (found[1] == "all" or int(found[1]) in [flow["flow"] for flow in self.flows])
        return {"flows": 1} if known else {"error": "no flow"}


@pytest.fixture
def daemon(tmp_path):
    one = Daemon(str(tmp_path / "headwayd.sock"))
    yield one
    one.listener.close()


BBR = {"btlbw_mbps": 9.5, "rtprop_ms": 12.0, "pacing_gain": 1.25, "cwnd_gain": 2.0}


def test_bbrs_variables_come_from_headwayd(daemon):
    with connection("127.0.0.1") as flow:
        remote = f"127.0.0.1:{flow.getpeername()[1]}"
        daemon.flows = [{"flow": 3, "remote": remote, "lost_packets": 7, **BBR}]
        monitor = HeadwaydMonitor(daemon.path, "bbr", frozenset({flow.getsockname()[1]}), every_s=0.02)
        until = time.monotonic() + 60
        while not monitor.status.flows() and time.monotonic() < until:
            time.sleep(0.01)
        (one,) = [stats for stats in monitor.sample() if stats.flow == id_of(flow)]
        assert {key: getattr(one, key) for key in BBR} == BBR
        assert one.lost_packets == 7
        # It has ended. Its last status is too old, and TCP_INFO's count of losses is another.
        monitor.status._at -= 10
        monitor.status._ended.set()
        assert id_of(flow) not in [stats.flow for stats in monitor.sample()]
        monitor.close()


def test_headwayds_flows_are_found_by_both_ends_or_by_a_unique_remote():
    ids = ["10.0.0.1:1-10.0.0.2:9", "10.0.0.1:2-10.0.0.2:9", "10.0.0.1:3-10.0.0.3:9", "[::1]:4-[::1]:9"]
    remotes = ["10.0.0.2:9", "10.0.0.2:9", "[::ffff:10.0.0.3]:9", "[::1]:9"]
    flows = [{"flow": n, "remote": remote} for n, remote in enumerate(remotes)]
    assert {flow: one["flow"] for flow, one in matched(flows, ids).items()} == {ids[2]: 2, ids[3]: 3}
    for one, flow in zip(flows, ids, strict=True):
        one["local"] = flow.rsplit("-", 1)[0]
    assert {flow: one["flow"] for flow, one in matched(flows, ids).items()} == {
        flow: n for n, flow in enumerate(ids)
    }


def test_windows_are_set_like_headwayd_set(daemon):
    tuner = HeadwaydTuner(daemon.path)
    daemon.flows = [{"flow": 5, "local": "10.0.0.1:1", "remote": "10.0.0.2:9"}]
    assert tuner.apply("10.0.0.1:1-10.0.0.2:9", {"rtprop_window": 0.25, "btlbw_window": 4.0})
    assert not tuner.apply("10.0.0.1:2-10.0.0.2:9", {"btlbw_window": 4.0})
    assert tuner.apply("*", {"rtprop_window": 10.0, "btlbw_window": 10.0})
    assert [word for word in daemon.asked if word != "status"] == [
        "set 5 rtprop_window=250000us btlbw_window=4",
        "set all rtprop_window=10000000us btlbw_window=10",
    ]


def test_the_flows_of_one_status_are_indexed_once(daemon, monkeypatch):
    """A status has thousands of flows. Indexing them for each request would take quadratic time."""
    indexed = []
    ends = headwayd._ends
    monkeypatch.setattr(headwayd, "_ends", lambda one: indexed.append(one) or ends(one))
    monkeypatch.setattr(headwayd, "LOOK_S", 60.0)
    daemon.flows = [{"flow": n, "local": f"10.0.0.1:{n}", "remote": "10.0.0.2:9"} for n in range(20)]
    tuner = HeadwaydTuner(daemon.path)
    for n in range(20):
        assert tuner.apply(f"10.0.0.1:{n}-10.0.0.2:9", {"btlbw_window": 4.0})
    assert len(indexed) <= 3 * 20


def test_a_hanging_or_missing_headwayd_gives_a_one_line_error(daemon, tmp_path):
    daemon.hangs = True
    with pytest.raises(RunError, match="headwayd run --controllers headway_bbr"):
        headwayd.ask(daemon.path, "status", patience_s=0.2)
    with pytest.raises(RunError, match="no headwayd answers"):
        HeadwaydTuner(str(tmp_path / "nowhere")).apply("*", {"btlbw_window": 4.0})


def test_discovery_of_namespaces_continues_after_an_error(monkeypatch):
    """The error is one such as too many open files. An error at the start is reported."""
    looks = threading.Semaphore(0)
    there = namespaces.files
    fails = [OSError(24, "Too many open files")]

    def files():
        looks.release()
        for error in fails[:1]:
            raise error
        return there()

    monkeypatch.setattr(namespaces, "files", files)
    monkeypatch.setattr(Namespaces, "_enter", lambda *_: None)
    with pytest.raises(RunError, match="network namespaces"):
        Namespaces(every_s=0.01)
    error = fails.pop()
    found = Namespaces(every_s=0.01)
    fails.append(error)
    for _ in range(5):
        assert looks.acquire(timeout=60)
    while looks.acquire(blocking=False):
        pass
    fails.clear()
    for _ in range(3):
        assert looks.acquire(timeout=60)
    assert found._thread.is_alive()
    found.close()


def test_values_missing_from_headwayds_status_are_unknown():
    one = headwayd.with_bbr(GOOD, {"flow": 1, "btlbw_mbps": None, "rtprop_ms": True})
    assert one == replace(GOOD, btlbw_mbps=None, rtprop_ms=None, pacing_gain=None, cwnd_gain=None)
