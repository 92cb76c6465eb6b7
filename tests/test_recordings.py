"""Recordings, as other programs read them.

These are tshark, the qlog drafts' schema, mm-throughput-graph.
"""

import json
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import cbor2
import pycddl
import pytest

import mahimahi_log
import needs
from headway._native import Batch, Scenario

TCP_HEADERS = 52
"""IPv4 and TCP with timestamps, bytes."""


@pytest.fixture(scope="session")
def tshark():
    program = shutil.which("tshark")
    if program is None:
        needs.skip("tshark", "needs tshark: apt-get install tshark")

    def read(path: Path, *fields: str, options: tuple[str, ...] = ()) -> list[dict[str, str]]:
        """These fields of every packet."""
        checksums = (
            "-o",
            "ip.check_checksum:TRUE",
            "-o",
            "tcp.check_checksum:TRUE",
            "-o",
            "udp.check_checksum:TRUE",
        )
        printed = [part for field in fields for part in ("-e", field)]
        command = [program, "-r", path, *checksums, *options, "-T", "fields", *printed]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        lines = (line.split("\t") for line in done.stdout.splitlines())
        return [dict(zip(fields, line, strict=True)) for line in lines]

    return read


def scenario(folder: Path, text: str) -> Scenario:
    file = folder / "recorded.toml"
    head = 'schema = 1\nname = "recorded"\ndescription = "of a test"\nseconds = 10\n'
    file.write_text(head + text)
    return Scenario.load(str(file))


def record(
    folder: Path, text: str, scheme: str = "cubic", *, seconds: float = 10, seed: int = 1
) -> tuple[dict, Path]:
    """Runs the scheme once. Returns the results of flow 0 and the folder with the recordings."""
    batch = Batch(
        [scenario(folder, text)],
        [scheme],
        runs=1,
        seconds=seconds,
        seed=seed,
        recordings=folder / "out",
        pcap=True,
        qlog=True,
        logs=True,
    )
    batch.start()
    while not batch.wait(1):
        pass
    assert batch.recording_failures() == []
    (row,) = (r for r in batch.results() if r["flow"] == 0)
    paths = [Path(r["path"]) for r in batch.recordings()]
    assert all(p.is_file() for p in paths)
    return row, paths[0].parent


RAX = '[bottleneck]\nrate = "20Mbps"\ndelay = "25ms"\nqueue = "{queue}"\n{more}'


def events(path: Path) -> list[dict]:
    """The records of a JSON text sequence (RFC 7464), the head first."""
    records = path.read_bytes().split(b"\x1e")
    assert records[0] == b""
    assert all(r.endswith(b"\n") for r in records[1:])
    return [json.loads(r) for r in records[1:]]


# --- pcap ---


def test_tsharks_measurements_match_the_metrics(tmp_path, tshark):
    """The window is 120 packets over a BDP of 100 without loss.

    tshark's ACK RTT and goodput match.
    """
    row, folder = record(tmp_path, RAX.format(queue="1000pkt", more=""), "fixed-window:window=120")
    sent = tshark(folder / "run-0.sender.pcap", "tcp.len", "tcp.analysis.ack_rtt", "frame.len", "tcp.srcport")
    rtts = [1e3 * float(p["tcp.analysis.ack_rtt"]) for p in sent if p["tcp.analysis.ack_rtt"]]
    data = [p for p in sent if p["tcp.len"] != "0"]
    assert len(data) == row["sent_packets"]
    assert {p["frame.len"] for p in data} == {"1500"}
    assert {p["frame.len"] for p in sent if p["tcp.len"] == "0"} == {str(TCP_HEADERS)}
    assert len(rtts) > 15_000
    assert sum(rtts) / len(rtts) == pytest.approx(row["rtt_mean_ms"], rel=1e-6)

    got = tshark(folder / "run-0.receiver.pcap", "tcp.len", "frame.time_relative", "frame.len")
    arrived = [p for p in got if p["tcp.len"] != "0"]
    assert len(arrived) == row["delivered_packets"]
    # From the first arrival to the run's end, 10 s; it began 25.6 ms in, as the sender's first
    # packet did.
    bits = 8 * sum(int(p["frame.len"]) for p in arrived)
    span = 10 - (25e-3 + 1500 * 8 / 20e6)
    assert bits / span / 1e6 == pytest.approx(row["throughput_mbps"], rel=1e-6)
    goodput = 8 * sum(int(p["tcp.len"]) for p in arrived) / span / 1e6
    assert goodput == pytest.approx(row["throughput_mbps"] * (1500 - TCP_HEADERS) / 1500, rel=1e-6)


def test_tshark_finds_the_retransmissions(tmp_path, tshark):
    row, folder = record(tmp_path, RAX.format(queue="50pkt", more="loss = 0.01"))
    fields = (
        "tcp.seq",
        "tcp.len",
        "tcp.ack",
        "tcp.analysis.retransmission",
        "tcp.analysis.out_of_order",
        "tcp.options.sack_le",
    )
    sent = tshark(folder / "run-0.sender.pcap", *fields)
    data = [p for p in sent if p["tcp.len"] != "0"]
    assert len(data) == row["sent_packets"]
    repeated = len(data) - len({p["tcp.seq"] for p in data})
    assert repeated > 10
    # A retransmission within 3 ms of other data is "out of order" to tshark, which has seen no
    # handshake.
    found = [p for p in data if p["tcp.analysis.retransmission"] or p["tcp.analysis.out_of_order"]]
    assert len(found) == repeated
    # The log of the sender and the log of the link agree with the capture.
    log = events(folder / "run-0.flow-0.sqlog")[1:]
    assert sum(e["name"] == "transport:packet_sent" for e in log) == len(data)
    assert sum(e["name"] == "recovery:packet_lost" for e in log) >= repeated
    link = mahimahi_log.read(folder / "run-0.bottleneck.log")
    got = tshark(folder / "run-0.receiver.pcap", *fields)
    arrived = [p for p in got if p["tcp.len"] != "0"]
    assert len(arrived) == row["delivered_packets"]
    assert link.departed >= len(arrived) > link.departed - 100
    # Every gap is reported, and the sender sees the same acknowledgements.
    acks = [(p["tcp.ack"], p["tcp.options.sack_le"]) for p in got if p["tcp.len"] == "0"]
    seen = [(p["tcp.ack"], p["tcp.options.sack_le"]) for p in sent if p["tcp.len"] == "0"]
    assert seen == acks[: len(seen)]
    assert sum(1 for _, sack in acks if sack) > 100


def test_sack_blocks_match_the_arrivals_in_the_capture(tmp_path, tshark):
    """Replays the receiver's capture. No acknowledgement covers a byte that had not arrived."""
    _, folder = record(tmp_path, RAX.format(queue="10pkt", more="loss = 0.03"), seconds=5)
    fields = ("tcp.seq", "tcp.len", "tcp.ack", "tcp.options.sack_le", "tcp.options.sack_re")
    arrived: set[int] = set()
    blocks = 0
    for p in tshark(folder / "run-0.receiver.pcap", *fields):
        if p["tcp.len"] != "0":
            arrived.add(int(p["tcp.seq"]))
            continue
        length = 1500 - TCP_HEADERS
        ends = zip(p["tcp.options.sack_le"].split(","), p["tcp.options.sack_re"].split(","), strict=True)
        for left, right in ((int(a), int(b)) for a, b in ends if a):
            blocks += 1
            assert arrived.issuperset(range(left, right, length))
            if left >= int(p["tcp.ack"]):
                assert left - length not in arrived, "a block begins after a gap"
                assert right not in arrived, "and ends before one"
        ack = int(p["tcp.ack"])
        assert ack - length in arrived
        assert ack not in arrived
    assert blocks > 100


def complaints(tshark, path: Path) -> list[dict[str, str]]:
    """Packets that tshark reports as malformed, or with wrong checksums."""
    fields = (
        "frame.number",
        "_ws.malformed",
        "_ws.expert.message",
        "ip.checksum.status",
        "tcp.checksum.status",
        "_ws.expert.severity",
    )
    bad = "_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0 || _ws.expert.severity >= 8388608"
    return tshark(path, *fields, options=("-Y", bad))


def test_checksums_are_right(tmp_path, tshark):
    more = '[[cross]]\nfrom = "sender"\nto = "receiver"\nrate = "2Mbps"\n'
    _, folder = record(tmp_path, RAX.format(queue="100pkt", more=more), seconds=3)
    for path in folder.glob("*.pcap"):
        packets = tshark(path, "ip.checksum.status", "tcp.len", "tcp.checksum.status", "udp.length", "ip.ttl")
        assert {p["ip.checksum.status"] for p in packets} == {"1"}
        # The capture has only headers of data packets. tshark checks the others.
        assert {p["tcp.checksum.status"] for p in packets if p["tcp.len"] == "0"} == {"1"}
        assert any(p["udp.length"] for p in packets)
        assert complaints(tshark, path) == []


def test_marks_are_seen_and_echoed(tmp_path, tshark):
    queue = 'queue = { kind = "step", threshold = "20pkt", packets = "500pkt" }'
    text = RAX.replace('queue = "{queue}"', "{queue}").format(queue=queue, more="")
    _, folder = record(tmp_path, text, "newreno:ecn=on", seconds=5)
    fields = ("tcp.len", "ip.dsfield.ecn", "tcp.flags.ece")
    sent, got = (tshark(folder / f"run-0.{host}.pcap", *fields) for host in ("sender", "receiver"))
    assert {p["ip.dsfield.ecn"] for p in sent if p["tcp.len"] != "0"} == {"2"}
    marked = sum(p["ip.dsfield.ecn"] == "3" for p in got)
    assert marked > 10
    assert marked == sum(p["tcp.flags.ece"] in {"1", "True"} for p in got)


def test_data_checksums_cover_zeros(tmp_path):
    """RFC 9293 §3.1 over headers, pseudo-header and the payload that the capture leaves out."""
    _, folder = record(tmp_path, RAX.format(queue="100pkt", more=""), seconds=1)
    capture = (folder / "run-0.sender.pcap").read_bytes()
    at, checked = 24, 0
    while at < len(capture):
        kept, length = (int.from_bytes(capture[at + i : at + i + 4], "little") for i in (8, 12))
        ip = capture[at + 16 : at + 16 + kept]
        at += 16 + kept
        segment = ip[20:] + bytes(length - kept)
        pseudo = ip[12:20] + b"\0\x06" + len(segment).to_bytes(2, "big")
        words = pseudo + segment
        total = sum(int.from_bytes(words[i : i + 2], "big") for i in range(0, len(words), 2))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        assert total == 0xFFFF
        checked += length > TCP_HEADERS
    assert checked > 100


# --- qlog ---

CDDL = (Path(__file__).parent / "data" / "qlog-0.3.cddl").read_text()
RULES = {
    "transport:packet_sent": "TransportPacketSent",
    "transport:packet_received": "TransportPacketReceived",
    "recovery:packet_lost": "RecoveryPacketLost",
    "recovery:metrics_updated": "RecoveryMetricsUpdated",
    "recovery:congestion_state_updated": "RecoveryCongestionStateUpdated",
}


def conforms(rule: str, value: object) -> None:
    """Raises pycddl.ValidationError."""
    pycddl.Schema(f"of_headway = {rule}\n{CDDL}").validate_cbor(cbor2.dumps(value))


def keys(rule: str) -> set[str]:
    """The keys of a map in the schema.

    (The schema lets other data ride along, so a misspelt key conforms.)
    """
    body = re.search(rf"^{rule} = {{\n(.*?)^}}", CDDL, re.MULTILINE | re.DOTALL)
    return set(re.findall(r"^ +\??\s*(\w+):", body[1], re.MULTILINE))


def check_qlog(path: Path) -> list[dict]:
    """Validates one event of each set of keys and of string values.

    It also validates some fifty events of each name.
    """
    head, *log = events(path)
    conforms("QlogFileSeq", head)
    assert head["qlog_version"] == "0.3"  # a version that qvis reads
    times = [e["time"] for e in log]
    assert all(isinstance(t, float) for t in times)
    assert times == sorted(times)
    assert {frozenset(e) for e in log} <= {frozenset(("time", "name", "data"))}
    assert {e["name"] for e in log} <= set(RULES)
    for name, rule in RULES.items():
        data = [e["data"] for e in log if e["name"] == name]
        assert {key for d in data for key in d} <= keys(rule)
        kinds = {(*d, *(v for v in d.values() if isinstance(v, str))): d for d in data}
        conforms(f"[* {rule}]", [*kinds.values(), *data[:: len(data) // 50 + 1]])
    return log


def test_the_schema_refuses_wrong_events():
    with pytest.raises(pycddl.ValidationError):
        conforms("RecoveryPacketLost", {"header": {"packet_type": "1RTT", "packet_number": 1}, "trigger": "fate"})
    with pytest.raises(pycddl.ValidationError):
        conforms("[* TransportPacketSent]", [{"header": {"packet_type": "data", "packet_number": 1}}])
    assert {"congestion_window", "ssthresh", "pacing_rate"} <= keys("RecoveryMetricsUpdated")


def test_qlog_records_the_senders_behaviour(tmp_path):
    row, folder = record(tmp_path, RAX.format(queue="50pkt", more="loss = 0.005"), "newreno")
    log = check_qlog(folder / "run-0.flow-0.sqlog")
    of = {name: [e for e in log if e["name"] == name] for name in RULES}
    sent = [e["data"]["header"]["packet_number"] for e in of["transport:packet_sent"]]
    assert sent == list(range(row["sent_packets"]))
    lost = [e["data"]["header"]["packet_number"] for e in of["recovery:packet_lost"]]
    acked = {
        n
        for e in of["transport:packet_received"]
        for first, last in e["data"]["frames"][0]["acked_ranges"]
        for n in range(first, last + 1)
    }
    assert len(lost) == len(set(lost)) > 20
    assert not acked & set(lost), "nothing arrives late on this link"
    # NewReno sets ssthresh when it sees a loss (RFC 5681 §3.1), and no packet is lost without.
    reduced = {e["time"] for e in of["recovery:metrics_updated"] if "ssthresh" in e["data"]}
    assert len(reduced) > 5
    assert reduced <= {e["time"] for e in of["recovery:packet_lost"]}
    states = [e["data"]["new"] for e in of["recovery:congestion_state_updated"]]
    assert states[0] == "slow_start"
    assert {"recovery", "congestion_avoidance"} <= set(states)
    rtts = [e["data"]["latest_rtt"] for e in of["recovery:metrics_updated"] if "latest_rtt" in e["data"]]
    assert min(rtts) >= 50


@pytest.mark.parametrize("scheme", ["bbr", "cubic", "copa", "vegas"])
def test_every_kind_of_scheme_conforms(tmp_path, scheme):
    _, folder = record(tmp_path, RAX.format(queue="50pkt", more=""), scheme, seconds=4)
    log = check_qlog(folder / "run-0.flow-0.sqlog")
    paced = any("pacing_rate" in e["data"] for e in log)
    assert paced == (scheme in {"bbr", "copa"})


# --- mahimahi's logs ---

VERIZON = """
[bottleneck]
trace = "Verizon-LTE-short.down"
delay = "20ms"
once = true
[return]
trace = "Verizon-LTE-short.up"
delay = "20ms"
once = true
"""


@pytest.mark.usefixtures("recorded_traces")
@pytest.mark.parametrize(
    ("window", "mbps", "queue", "signal", "late"), [(20, 3.34, 96, 278, 6), (100, 5.02, 517, 1056, 54)]
)
def test_logs_give_the_published_figures(tmp_path, window, mbps, queue, signal, late):
    """A model of mahimahi's rules gives published results.

    They are 3.31 Mbit/s, 96 and 277 ms; 5.03, -, 1055. The signal is later than theirs, because our
    sender is silent longer in the one outage of three seconds: docs/validation.md has the reason.
    `cellular::fixed_windows_over_the_transport` has the same bounds.
    """
    row, folder = record(tmp_path, VERIZON, f"fixed-window:window={window}", seconds=140)
    graph = mahimahi_log.read(folder / "run-0.bottleneck.log")
    assert graph.throughput_mbps == pytest.approx(mbps, rel=0.01)
    assert graph.queue_p95_ms == pytest.approx(queue, abs=2)
    assert 0 <= graph.signal_p95_ms - signal <= late
    # These are our own metrics of the run. A packet has 4 bytes more in the log, and times in whole
    # milliseconds.
    assert graph.throughput_mbps * 1500 / 1504 == pytest.approx(row["throughput_mbps"], rel=0.002)
    assert graph.queue_p95_ms == pytest.approx(row["queue_p95_ms"], abs=1.5)
    assert graph.capacity_mbps == pytest.approx(5.028 * 1504 / 1500, rel=0.002)


def test_logs_of_a_rate_have_opportunities_and_drops(tmp_path):
    row, folder = record(tmp_path, RAX.format(queue="10pkt", more=""))
    graph = mahimahi_log.read(folder / "run-0.bottleneck.log")
    assert graph.capacity_mbps == pytest.approx(20, rel=0.001)
    assert graph.arrived == row["sent_packets"]
    assert graph.dropped > 10
    assert 0 <= graph.arrived - graph.departed - graph.dropped <= 11  # the packets left at the end
    assert graph.queue_p95_ms == pytest.approx(row["queue_p95_ms"], abs=1)
    assert not (folder / "run-0.return.log").exists(), "a link without a rate has no queue to log"


# --- all three ---


@pytest.mark.parametrize("seed", range(8))
def test_random_runs_can_be_read(tmp_path, tshark, seed):
    draw = random.Random(seed)
    more = [f"loss = {draw.choice([0, 0.01, 0.1, 0.4])}"]
    if draw.random() < 0.5:
        more.append(f'reorder = {{ probability = {draw.random() / 4:.3f}, delay = "{draw.randint(1, 40)}ms" }}')
    if draw.random() < 0.5:
        more.append(f'jitter = "{draw.randint(1, 20)}ms"')
    source = draw.choice(["", '[[flow]]\nbytes = "123456B"\n', '[[flow]]\n[[flow]]\nstart = "300ms"\n'])
    linux = draw.choice(["", 'transport = "linux"\n'])
    queue = draw.choice(["3pkt", "20pkt", "500pkt"])
    text = linux + RAX.format(queue=queue, more="\n".join(more) + "\n" + source)
    row, folder = record(tmp_path, text, draw.choice(["newreno", "cubic", "bbr"]), seconds=2, seed=seed)
    for path in folder.glob("*.pcap"):
        assert complaints(tshark, path) == []
    data = [p for p in tshark(folder / "run-0.sender.pcap", "tcp.len", "tcp.stream") if p["tcp.len"] != "0"]
    assert sum(p["tcp.stream"] == "0" for p in data) == row["sent_packets"]
    for path in folder.glob("*.sqlog"):
        check_qlog(path)
    graph = mahimahi_log.read(folder / "run-0.bottleneck.log")
    assert graph.departed <= graph.arrived


BENCH = (
    "bench",
    "--schemes",
    "fixed-window:window=20,cubic",
    "--scenario",
    "rax-1-loss,parking-lot",
    "--runs",
    "2",
)
RECORD = ("--pcap", "--qlog", "--logs")


def test_bench_lists_recordings_and_they_do_not_depend_on_jobs(run, tmp_path):
    one, two, plain = tmp_path / "one", tmp_path / "two", tmp_path / "plain"
    for out, more in ((one, (*RECORD, "--jobs", "1")), (two, (*RECORD, "--jobs", "2")), (plain, ())):
        done = run(*BENCH, "--seconds", "2", *more, "--out", out)
        assert done.returncode == 0, done.stderr
        assert ("\nrecordings: " in done.stdout) == bool(more)
    listed = json.loads((one / "bench.json").read_text())["recordings"]
    files = sorted(p.relative_to(one).as_posix() for p in (one / "recordings").rglob("*") if p.is_file())
    assert sorted(listed) == files
    assert "recordings/rax-1-loss/fixed-window,window=20/run-0.sender.pcap" in files
    assert {Path(f).suffix for f in files} == {".pcap", ".sqlog", ".log"}
    for file in files:
        assert (one / file).read_bytes() == (two / file).read_bytes()
    # A recorded run is the same run.
    for name in ("results.parquet", "series.parquet"):
        assert (one / name).read_bytes() == (plain / name).read_bytes()


def test_a_full_disk_loses_only_the_recording(tmp_path):
    """A limit on the size of files simulates the full disk."""
    out, limit = tmp_path / "out", 3 << 20
    done = subprocess.run(
        [sys.executable, "-m", "headway", *BENCH, "--seconds", "30", "--pcap", "--out", out],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        check=False,
    )
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines
    assert all(
        line.startswith("headway: ") and "recordings/" in line and "File too large" in line for line in lines
    )
    assert (out / "results.parquet").is_file()
    assert (out / "report.html").is_file()


def test_an_interrupted_run_leaves_complete_recordings(tmp_path, tshark):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "headway", "bench", "--schemes", "cubic", "--scenario", "rax-1"]
    command += ["--seconds", "100000", *RECORD, "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    folder = out / "recordings" / "rax-1" / "cubic"
    packets = folder / "part-of-run-0.sender.pcap"
    deadline = time.monotonic() + 60
    try:
        while not packets.exists() or packets.stat().st_size < 1 << 20:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()  # It would fill the disk.
    assert process.returncode == 130, errors
    assert complaints(tshark, packets) == []
    check = mahimahi_log.read(folder / "part-of-run-0.bottleneck.log")
    assert check.departed > 1000
    assert len(events(folder / "part-of-run-0.flow-0.sqlog")) > 1000
