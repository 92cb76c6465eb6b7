"""`headway try`: orders, pairs and verdicts by hand; transfers over loopback."""

import errno
import hashlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from itertools import permutations
from types import SimpleNamespace

import pytest

from headway._native import RunError, UsageError
from headway.cli.app import run as command
from headway.cli.try_ import _address, _finish
from headway.compare import Zone
from headway.files import alone_in
from headway.netwatch.tokens import Tokens, new
from headway.path_trial import controllers, transfer, trial, wire
from headway.path_trial.controllers import named
from headway.path_trial.folder import FACTS, ROWS, TrialFolder
from headway.path_trial.picture import picture
from headway.path_trial.server import Limits, Server, listen, tokens_for
from headway.path_trial.transfer import (
    BusyError,
    EndedError,
    Look,
    Measured,
    Sender,
    _look,
    measured,
)
from headway.path_trial.trial import Plan, check_time, order, usual_seconds
from headway.path_trial.verdicts import notes, summary, verdicts, whole_rounds

DEADLINE_S = 120
"""Ends only what hangs."""
SCHEMES = {"cubic": "cubic", "owl": "headway_owl"}
MEASURED = Measured(10.0, 1.0, 2.0, 3.0, 0.01, 0.0, 0.0, 200, 1000)


def row(number, scheme, **more):
    """A transfer with round figures."""
    figures = {"throughput_mbps": 10.0, "rtt_min_ms": 50.0, "rtt_p50_ms": 80.0, "rtt_p95_ms": 100.0}
    shares = {"retransmitted": 1 / 64, "window_limited": 0.0, "buffer_limited": 0.0}
    return {"round": number, "scheme": scheme, "took_s": 5.0, **figures, **shares, **more}


def pairs(metric, first, second):
    """A round for each two values of a metric, of cubic and of owl."""
    both = enumerate(zip(first, second, strict=True))
    rows = [(row(k, "cubic", **{metric: a}), row(k, "owl", **{metric: b})) for k, (a, b) in both]
    return whole_rounds([one for two in rows for one in two], list(SCHEMES))


def verdict(metric, first, second):
    found = verdicts(pairs(metric, first, second), list(SCHEMES))
    return next(one for one in found if one.measure.metric == metric)


# Orders and time


def test_each_order_of_a_round_occurs_about_as_often_as_any_other():
    orders = [tuple(order("abc", 1, number)) for number in range(600)]
    counts = {each: orders.count(each) for each in permutations("abc")}
    assert sum(counts.values()) == 600
    assert min(counts.values()) > 60


def test_the_seed_alone_decides_the_orders():
    assert [order("abc", 7, k) for k in range(50)] == [order("abc", 7, k) for k in range(50)]
    assert [order("abc", 7, k) for k in range(50)] != [order("abc", 8, k) for k in range(50)]


@pytest.mark.parametrize(
    ("minutes", "schemes", "seconds"),
    [(30, 3, 10.0), (15, 3, 9.0), (3, 3, 1.8), (5, 2, 4.5), (0.5, 2, 1.0)],
)
def test_thirty_rounds_fit_where_transfers_need_not_be_too_short(minutes, schemes, seconds):
    assert usual_seconds(minutes, schemes) == seconds


def test_thirty_rounds_fit_with_the_time_beside_sending(tmp_path):
    """At an RTT of 50 ms: TCP's handshake, greeting, question, and 0.25 s until the last byte."""
    transfers = Transfers(usual_seconds(5, 2) + 3 * 0.05 + 0.25)
    kept, _ = transfers.run(tmp_path, minutes=5)
    assert len(whole_rounds(kept.rows, SCHEMES)) >= 30


def test_two_rounds_have_to_fit():
    plan = Plan("there", SCHEMES, 1.5, 1)
    check_time(0.1, plan)
    with pytest.raises(UsageError, match=r"2 rounds of 2 transfers of 1\.5 s take 0\.1; give"):
        check_time(0.09, plan)


class Transfers:
    """Take this long each on a clock of their own, and do what is next in `does`, if anything."""

    def __init__(self, seconds, does=()):
        self.now, self.seconds, self.does, self.sent = 0.0, seconds, list(does), []

    def send(self, scheme, controller, seconds, asked):
        assert not asked.is_set()
        self.sent.append((scheme, controller, seconds))
        self.now += self.seconds
        if self.does and (error := self.does.pop(0)):
            raise error
        return MEASURED

    def run(self, folder, minutes=1.0, schemes=SCHEMES):
        said, kept = [], TrialFolder(folder)
        trial.run(
            Plan("there", schemes, 5.0, 1),
            kept,
            self.send,
            minutes=minutes,
            asked=threading.Event(),
            tell=said.append,
            warn=said.append,
            clock=lambda: self.now,
        )
        return kept, said


@pytest.mark.parametrize(("takes", "rounds"), [(5, 6), (7, 4), (29, 1), (31, 1)])
def test_the_last_round_ends_as_close_to_the_minutes_as_can_be(tmp_path, takes, rounds):
    """A round has two transfers, and there is a minute."""
    kept, shares = Transfers(takes).run(tmp_path)
    assert [one["round"] for one in kept.rows] == [k // 2 for k in range(2 * rounds)]
    assert shares[0] == min(1.0, takes / 60)


def test_each_round_has_each_scheme_once_in_the_drawn_order(tmp_path):
    transfers = Transfers(5)
    kept, _ = transfers.run(tmp_path)
    for number in range(6):
        of_round = [one for one in kept.rows if one["round"] == number]
        assert [one["scheme"] for one in of_round] == order(SCHEMES, 1, number)
        assert [one["place"] for one in of_round] == [0, 1]
    assert transfers.sent[0][1:] == (SCHEMES[transfers.sent[0][0]], 5.0)


def test_a_trial_goes_on_where_it_ended_and_leaves_out_the_round_that_was_not_whole(tmp_path):
    kept, _ = Transfers(5, [None, None, None, EndedError()]).run(tmp_path)
    assert len(kept.rows) == 3
    kept, _ = Transfers(5).run(tmp_path)
    # 15 of 60 s were over: round 2 to 6 fit, 5 of them end at 65 s and are closer than 4.
    assert [one["round"] for one in kept.rows] == [0, 0, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
    assert [one["cubic"]["round"] for one in whole_rounds(kept.rows, SCHEMES)] == [0, 2, 3, 4, 5, 6]
    again, _ = Transfers(5).run(tmp_path)
    assert again.rows == kept.rows


def test_a_failure_costs_its_round_and_several_in_a_row_end_the_trial(tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "PATIENCE_S", 0.0)
    kept, said = Transfers(5, [None, None, RunError("broke")]).run(tmp_path)
    assert "broke; this round does not count" in said
    assert [one["round"] for one in kept.rows][:4] == [0, 0, 2, 2]
    (tmp_path / "other").mkdir()
    transfers = Transfers(1, [None, None, *[RunError("broke")] * 5])
    with pytest.raises(RunError, match="broke"):
        transfers.run(tmp_path / "other")
    assert len(transfers.sent) == 7


def test_a_controller_that_always_fails_ends_the_trial_although_the_other_works(tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "PATIENCE_S", 0.0)

    class OwlFails(Transfers):
        """Each transfer of owl fails, but the first."""

        def send(self, scheme, *rest):
            has_sent = scheme in [name for name, *_ in self.sent]
            self.does = [RunError("broke") if scheme == "owl" and has_sent else None]
            return super().send(scheme, *rest)

    transfers = OwlFails(1)
    with pytest.raises(RunError, match="broke"):
        transfers.run(tmp_path, minutes=60)
    assert [scheme for scheme, *_ in transfers.sent].count("owl") == 1 + 5
    assert TrialFolder(tmp_path).failures == {"owl": 5}


def test_failed_transfers_are_counted_by_scheme_and_said(tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "PATIENCE_S", 0.0)
    broken = [None, None, RunError("broke"), None, RunError("broke")]
    transfers = Transfers(5, broken)
    kept, _ = transfers.run(tmp_path)
    failed = [transfers.sent[2][0], transfers.sent[4][0]]
    assert kept.failures == {scheme: failed.count(scheme) for scheme in failed}
    assert json.loads((tmp_path / FACTS).read_text())["failures"] == kept.failures
    assert TrialFolder(tmp_path).failures == kept.failures
    found = summary(kept.rows, SCHEMES, {"owl": 2})["notes"]
    assert found[0].startswith("2 transfers of owl failed; the verdicts leave out these rounds")


def test_a_row_that_cannot_be_kept_ends_the_trial_at_once(tmp_path, monkeypatch):
    """Transfers load the path, and each further one would be thrown away too."""
    transfers, add = Transfers(5), TrialFolder.add

    def full(self, row):
        if len(self.rows) == 2:
            raise RunError("rows.jsonl: No space left on device")
        add(self, row)

    monkeypatch.setattr(TrialFolder, "add", full)
    with pytest.raises(RunError, match="No space left"):
        transfers.run(tmp_path)
    assert len(transfers.sent) == 3


def test_a_trial_that_goes_on_after_a_look_says_so(tmp_path, capsys):
    """Only more rounds are a further look: to print the same again changes no error rate."""
    plan = Plan("there", SCHEMES, 5.0, 1)
    shown = []
    for minutes in (1.0, 1.0, 2.0):
        kept, _ = Transfers(5).run(tmp_path, minutes=minutes)
        _finish(plan, kept, None, json=True)
        shown.append(json.loads(capsys.readouterr().out))
    assert [one["looks"] for one in shown] == [1, 1, 2]
    warned = [any("went on after its results" in note for note in one["notes"]) for one in shown]
    assert warned == [False, False, True]


def test_results_that_cannot_be_written_are_printed(tmp_path, monkeypatch, capsys):
    kept, _ = Transfers(5).run(tmp_path)

    def full(*_):
        raise RunError("try.json: No space left on device")

    monkeypatch.setattr(TrialFolder, "write", full)
    with pytest.raises(RunError, match="No space left"):
        _finish(Plan("there", SCHEMES, 5.0, 1), kept, None, json=True)
    assert json.loads(capsys.readouterr().out)["rounds"] == 6


def test_a_trial_whose_first_transfer_fails_ends_at_once_and_leaves_nothing(tmp_path):
    with pytest.raises(RunError, match="broke"):
        Transfers(5, [RunError("broke")]).run(tmp_path)
    assert list(tmp_path.iterdir()) == []


# The folder


def test_what_a_crash_left_of_a_row_gives_way_to_the_next_one(tmp_path):
    Transfers(30).run(tmp_path)
    with (tmp_path / ROWS).open("ab") as file:
        file.write(b'{"round": 1, "sch')
    kept = TrialFolder(tmp_path)
    assert len(kept.rows) == 2
    kept.add(row(1, "cubic"))
    lines = (tmp_path / ROWS).read_text().splitlines()
    assert [json.loads(line)["round"] for line in lines] == [0, 0, 1]


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (Plan("there", SCHEMES, 5.0, 2), "with --seed 1, not 2"),
        (Plan("there", SCHEMES, 4.0, 1), "with --seconds 5.0, not 4.0"),
        (Plan("elsewhere", SCHEMES, 5.0, 1), "with --to there, not elsewhere"),
        (Plan("there", {"cubic": "cubic"}, 5.0, 1), "with --schemes cubic,owl, not cubic;"),
        (
            Plan("there", dict(reversed(SCHEMES.items())), 5.0, 1),
            "with --schemes cubic,owl, not owl,cubic;",
        ),
    ],
)
def test_the_folder_of_another_trial_is_refused(tmp_path, plan, says):
    Transfers(30).run(tmp_path)
    with pytest.raises(UsageError, match=says):
        TrialFolder(tmp_path).must_fit(plan)


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("kernel", "was measured by kernel another, and this is kernel "),
        ("code_version", "was measured by Headway another, and this is Headway "),
    ],
)
def test_rounds_of_another_kernel_or_headway_are_not_mixed_with_these(tmp_path, key, says):
    Transfers(30).run(tmp_path)
    facts, plan = json.loads((tmp_path / FACTS).read_text()), Plan("there", SCHEMES, 5.0, 1)
    TrialFolder(tmp_path).must_fit(plan)
    (tmp_path / FACTS).write_text(json.dumps(facts | {key: "another"}))
    with pytest.raises(UsageError, match=says):
        TrialFolder(tmp_path).must_fit(plan)


@pytest.mark.parametrize(
    ("facts", "rows", "says"),
    [
        (None, "", "holds rows.jsonl without its try.json"),
        ("[]", "", "try.json is not a trial's"),
        ('{"schema": 2, "seconds": 1, "schemes": {}}', "", "schema 2, not 1"),
        ('{"schema": 1, "seconds": 1, "schemes": {}}', "{}\n", "rows.jsonl:1: not a row"),
        ('{"schema": 1, "seconds": 1, "schemes": {}}', "no\n", "rows.jsonl:1: not a row"),
    ],
)
def test_a_folder_of_something_else_is_refused(tmp_path, facts, rows, says):
    if facts:
        (tmp_path / FACTS).write_text(facts)
    (tmp_path / ROWS).write_text(rows)
    with pytest.raises(UsageError, match=re.escape(says)):
        TrialFolder(tmp_path)


# Verdicts


def test_a_difference_of_each_round_alone_decides():
    """Differences of -10, -12, -14 and -12 ms: Student's t of 3 degrees of freedom is 3.182."""
    found = verdict("rtt_p95_ms", [100, 110, 120, 100], [90, 98, 106, 88])
    # The standard deviation is sqrt(8 / 3), half the interval 3.182 * 1.633 / 2 = 2.598.
    assert found.difference["ci95"] == pytest.approx([-14.598, -9.402], abs=0.001)
    assert (found.zone, found.rounds) == (Zone.BETTER, 4)
    says = "Over this path owl had 12.0 ms (9.4 to 14.6) less p95 RTT than cubic; 4 rounds."
    assert found.sentence == says


def test_throughput_is_compared_in_percent():
    found = verdict("throughput_mbps", [10, 10], [11, 11])
    says = "Over this path owl had 10.0% (10.0 to 10.0) more throughput than cubic; 2 rounds."
    assert (found.zone, found.sentence) == (Zone.BETTER, says)


def test_too_few_rounds_are_said_to_be_too_few():
    """Shares of 0, 10, -10 and 0 points around 10%: half an interval is 3.182 * 8.165 / 2."""
    found = verdict("throughput_mbps", [10] * 4, [11, 12, 10, 11])
    assert found.zone == Zone.UNCLEAR
    # 4 * (12.99 / 10) ** 2 is 6.75.
    assert found.sentence == (
        "4 rounds cannot tell whether owl had more or less throughput than cubic: "
        "10.0% (-3.0 to 23.0); about 7 rounds may."
    )


def test_where_nothing_varies_the_rounds_that_would_do_are_those_of_the_rule_of_three():
    """1 - 0.05^(1/n) of all rounds may be off by 1 point: below the margin of 0.1 from 29 on."""
    found = verdict("retransmitted", [0.0] * 5, [0.0] * 5)
    assert found.zone == Zone.UNCLEAR
    assert found.sentence.endswith(" (0.00 to 0.00); about 29 rounds may.")
    assert verdict("retransmitted", [0.0] * 28, [0.0] * 28).zone == Zone.UNCLEAR
    assert verdict("retransmitted", [0.0] * 29, [0.0] * 29).zone == Zone.EQUAL


def test_many_rounds_that_may_not_do_are_said_not_to():
    says = "even 1000 rounds may not."
    assert verdict("throughput_mbps", [10, 10], [9, 11.001]).sentence.endswith(says)


def test_one_round_tells_nothing():
    says = "1 round cannot tell whether owl had more or less throughput than cubic."
    assert verdict("throughput_mbps", [10], [20]).sentence == says
    assert verdict("throughput_mbps", [], []).sentence.startswith("0 rounds cannot tell")


def test_what_is_within_the_margin_is_the_same():
    """Differences of 100 / 4096 points either way: half an interval is 3.182 * 0.0282 / 2."""
    near = [1 / 64 + 1 / 4096, 1 / 64 - 1 / 4096]
    found = verdict("retransmitted", [1 / 64] * 4, near * 2)
    assert (found.zone, found.sentence) == (
        Zone.EQUAL,
        "Over this path owl and cubic had the same retransmissions, within 0.1 percentage points "
        "(-0.04 to 0.04); 4 rounds.",
    )


def test_the_margin_of_an_rtt_is_a_percent_of_the_first_scheme():
    apart = [100.9, 100.8, 100.85]
    assert verdict("rtt_p50_ms", [100.0] * 3, apart).zone == Zone.EQUAL
    assert verdict("rtt_p50_ms", [80.0] * 3, [80.9, 80.8, 80.95]).zone == Zone.WORSE


def test_a_round_that_is_not_whole_does_not_count():
    rows = [row(0, "cubic"), row(0, "owl"), row(1, "owl", throughput_mbps=99.0), row(2, "cubic")]
    assert [sorted(one) for one in whole_rounds(rows, SCHEMES)] == [["cubic", "owl"]]


def test_a_window_or_a_buffer_that_decides_is_said():
    rounds = pairs("window_limited", [0.0] * 10, [0.4] * 10)
    assert [line[:56] for line in notes(rounds, list(SCHEMES))] == [
        "the receiver's window held owl back for 40% of its time,"
    ]
    rounds = pairs("buffer_limited", [0.3] * 10, [0.0] * 10)
    assert notes(rounds, list(SCHEMES)) == [
        "this machine's send buffer held cubic back for 30% of its time, so that no controller "
        "could send more; raise the last number of net.ipv4.tcp_wmem here"
    ]
    few = notes(pairs("window_limited", [0.0] * 3, [0.0] * 3), list(SCHEMES))
    assert few == ["with fewer than 10 rounds intervals are rough; give more --minutes"]


def test_the_picture_has_a_point_and_a_region_for_each_scheme():
    rounds = [*range(9, 12), *range(9, 12)]
    rows = [
        row(k, scheme, rtt_p95_ms=90.0 + v, throughput_mbps=9 + v % 4)
        for k, v in enumerate(rounds)
        for scheme in SCHEMES
    ]
    layers = {layer.get("name", "") for layer in picture(rows, list(SCHEMES), "there")["layer"]}
    assert {"k0-point", "k0-region", "k1-point", "k1-region"} <= layers


# One transfer


def test_the_figures_of_a_transfer_come_from_its_looks():
    """20 looks with smoothed RTTs of 1 to 20 ms behind the first: the 10th and the 19th."""
    looks = [Look(1.0, 500, 77_000, 900, 10, 1, 1000, 500, 0)]
    looks += [Look(1.1, 600, 1000 * k, 900, 11, 1, 1100, 500, 0) for k in range(20, 0, -1)]
    looks[-1] = Look(3.0, 2_500_500, 1000, 800, 2010, 21, 2001_000, 500_500, 1000_000)
    found = measured(looks, 2_600_000)
    # 2.5 MB in 2 s; 20 of 2000 segments; 0.5 and 1 of 2 s.
    assert found == Measured(10.0, 0.8, 10.0, 19.0, 0.01, 0.25, 0.5, 20, 2_600_000)
    with pytest.raises(RunError, match="nothing was acknowledged"):
        measured([looks[0], looks[0]], 0)


def test_a_look_takes_the_fields_of_linuxs_tcp_info():
    """Places by hand from include/uapi/linux/tcp.h: 160 bytes, then the delivery rate."""
    info = bytearray(232)
    times = {"busy_us": 168, "window_limited_us": 176, "buffer_limited_us": 184}
    for at in times.values():
        struct.pack_into("=Q", info, at, at)
    look = _look(SimpleNamespace(getsockopt=lambda *_: bytes(info)))
    assert {name: getattr(look, name) for name in times} == times


# Controllers


def test_schemes_have_the_kernels_names():
    found = named(["cubic", "newreno", "owl", "aurora", "rax", "mine"], lambda _: 0)
    ours = ["headway_owl", "headway_rate", "headway_window"]
    assert list(found.values()) == ["cubic", "reno", *ours, "mine"]


@pytest.mark.parametrize(
    ("schemes", "says"),
    [
        (["cubic"], "give two at least"),
        (["owl", "owl-loss"], "owl and owl-loss are both headway_owl; run a second headwayd"),
        (["reno", "newreno"], "reno and newreno are both reno; leave one of them out"),
        (["cubic", "owl:online=true"], "headwayd run --policy owl:online=true), and name it owl"),
        (["cubic", "a name"], "not a name of a controller"),
        (["cubic", "sixteen-letters-"], "not a name of a controller"),
    ],
)
def test_schemes_that_cannot_be_compared_are_refused(schemes, says):
    with pytest.raises(UsageError, match=re.escape(says)):
        named(schemes, lambda _: 0)


def test_a_line_says_what_the_kernel_lacks_and_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(controllers, "SYSCTL", tmp_path)
    (tmp_path / "tcp_available_congestion_control").write_text("reno cubic\n")
    (tmp_path / "tcp_allowed_congestion_control").write_text("reno\n")
    errors = {"bbr": errno.ENOENT, "headway_owl": errno.ENOENT, "mine": errno.EPERM}
    with pytest.raises(UsageError) as refused:
        named(["cubic", "bbr", "owl", "mine"], lambda name: errors.get(name, 0))
    assert str(refused.value) == (
        "--schemes: the kernel does not have bbr (load it: sudo modprobe tcp_bbr); "
        "the kernel does not have owl (start it: sudo headwayd run --policy owl); "
        "this user may not choose mine "
        "(allow it: sudo sysctl net.ipv4.tcp_allowed_congestion_control='reno mine'); "
        "this kernel has reno, cubic"
    )


def test_the_kernel_itself_is_asked():
    assert controllers.try_out("no_such_name") == errno.ENOENT
    assert controllers.try_out("reno") == 0
    with socket.socket() as one:
        controllers.select(one, "reno")
        said = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    assert said.rstrip(b"\0") == b"reno"


def test_an_ssthresh_that_outlives_its_transfer_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(controllers, "SYSCTL", tmp_path)
    (tmp_path / "tcp_no_metrics_save").write_text("0\n")
    assert len(controllers.doubts()) == 1
    (tmp_path / "tcp_no_ssthresh_metrics_save").write_text("1\n")
    assert controllers.doubts() == []


# Over loopback


@pytest.mark.parametrize(
    ("given", "host", "port"),
    [
        ("there", "there", 8634),
        ("there:9", "there", 9),
        ("192.0.2.1:0", "192.0.2.1", 0),
        ("2001:db8::1", "2001:db8::1", 8634),
        ("[2001:db8::1]", "2001:db8::1", 8634),
        ("[2001:db8::1]:9", "2001:db8::1", 9),
    ],
)
def test_an_address_may_name_a_port(given, host, port):
    assert _address(given) == (host, port)


@pytest.mark.parametrize(
    "given",
    ["", "a b", "there:x", "there:65536", "[::1]:", "a..b", "a..b:9", "x" * 64, ".a"],
)
def test_what_is_no_address_is_refused(given):
    with pytest.raises(UsageError, match="--to"):
        _address(given)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--to", "there", "--bind", "::1"], "--bind: an option of --serve"),
        (["--to", "there", "--port", "1"], "--port: an option of --serve"),
        (["--serve", "--schemes", "cubic,reno"], "--schemes: an option of --to"),
        (["--serve", "--out", "x"], "--out: an option of --to"),
    ],
)
def test_an_option_of_the_other_side_is_refused(words, says, capsys):
    assert command(["try", *words]) == 2
    assert says in capsys.readouterr().err


def test_a_token_of_the_environment_is_no_option_of_the_other_side(monkeypatch, capsys):
    monkeypatch.setenv("HEADWAY_TRY_TOKEN", "mine")
    assert command(["try", "--serve", "--bind", "0.0.0.0"]) == 2
    assert "--bind 0.0.0.0: beyond loopback it needs --tokens" in capsys.readouterr().err


@contextmanager
def serving(tokens=None, **limits):
    """The port of a server of this process, and what it told."""
    ends, told = threading.Event(), []
    with listen("127.0.0.1", 0) as listening:
        server = Server(listening, tokens, Limits(**limits), told.append)
        thread = threading.Thread(target=server.serve, args=(ends,))
        thread.start()
        try:
            yield listening.getsockname()[1], told
        finally:
            ends.set()
            thread.join(DEADLINE_S)
            assert not thread.is_alive()


@pytest.fixture
def has_cubic():
    """Every Linux has Reno. Cubic is a module in some, which root's question loads."""
    if controllers.try_out("cubic"):
        pytest.skip("needs the kernel's Cubic: sudo modprobe tcp_cubic")


def send(port, token=None, seconds=0.1, controller="reno"):
    sender = Sender("127.0.0.1", port, token)
    return sender.send(controller, controller, seconds, threading.Event())


def connected(port):
    """A client that has been greeted, and the greeting."""
    client = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
    return client, wire.receive(client, DEADLINE_S)


def rest_of(client):
    """What comes until the other side ends the connection."""
    client.settimeout(DEADLINE_S)
    came = b""
    try:
        while part := client.recv(4096):
            came += part
    except ConnectionResetError:
        pass
    return came


def test_a_transfer_arrives_whole():
    with serving() as (port, told):
        found = send(port)
    assert found.bytes > 0
    assert found.throughput_mbps > 0
    assert found.samples > 0
    assert 0 < found.rtt_min_ms <= found.rtt_p95_ms
    assert found.rtt_p50_ms <= found.rtt_p95_ms
    assert 0 <= found.retransmitted <= 1
    assert re.fullmatch(r"127\.0\.0\.1: [\d.]+ MB in [\d.]+ s", *told)


@pytest.mark.usefixtures("has_cubic")
def test_the_command_compares_over_loopback(tmp_path, capsys):
    out, plot = tmp_path / "out", tmp_path / "plots" / "try.svg"
    with serving() as (port, _):
        words = ["try", "--to", f"127.0.0.1:{port}", "--schemes", "cubic,reno"]
        words += ["--seconds", "0.1", "--minutes", "0.01", "--out", str(out)]
        assert command([*words, "--json", "--plot", str(plot)]) == 0
        printed, _ = capsys.readouterr()
        found = json.loads(printed)
        assert json.loads((out / FACTS).read_text()) == found
        assert found["rounds"] >= 1
        assert [one["scheme"] for one in found["results"]] == ["cubic", "reno"]
        assert {one["metric"] for one in found["verdicts"]} == {
            *("throughput_mbps", "rtt_p50_ms", "rtt_p95_ms", "retransmitted")
        }
        assert "<svg" in plot.read_text()
        rows = [json.loads(line) for line in (out / ROWS).read_text().splitlines()]
        assert {one["controller"] for one in rows} == {"cubic", "reno"}
        # All of its time is over: it prints the same again, as a table.
        over = "".join(f"{json.dumps(one | {'took_s': 60.0})}\n" for one in rows)
        (out / ROWS).write_text(over)
        assert command(words) == 0
        table, _ = capsys.readouterr()
    assert (out / ROWS).read_text() == over
    assert "throughput Mbit/s" in table
    assert re.search(r"rounds? cannot tell whether reno|Over this path reno", table)


def test_a_token_is_needed_where_the_server_has_tokens(tmp_path):
    token = new("laptop", tmp_path / "tokens")
    with serving(Tokens(tmp_path / "tokens")) as (port, told):
        with pytest.raises(UsageError, match="takes a token; make one there: headway"):
            send(port)
        with pytest.raises(UsageError, match="the token is not known there"):
            send(port, "another")
        assert send(port, token).bytes > 0
    assert [line.partition(":")[0] for line in told] == ["laptop"]


@pytest.mark.usefixtures("has_cubic")
def test_the_command_takes_its_token_from_the_environment(tmp_path, monkeypatch, capsys):
    token, out = new("laptop", tmp_path / "tokens"), tmp_path / "out"
    with serving(Tokens(tmp_path / "tokens")) as (port, _):
        words = ["try", "--to", f"127.0.0.1:{port}", "--schemes", "cubic,reno", "--json"]
        words += ["--seconds", "0.1", "--minutes", "0.01", "--out", str(out)]
        monkeypatch.setenv("HEADWAY_TRY_TOKEN", "another")
        assert command(words) == 2
        *_, last = capsys.readouterr().err.splitlines()
        assert "the token is not known there; make one there: headway netwatch token" in last
        assert list(out.iterdir()) == []
        monkeypatch.setenv("HEADWAY_TRY_TOKEN", token)
        assert command(words) == 0
    assert json.loads(capsys.readouterr().out)["rounds"] >= 1


def test_a_proof_is_the_hmac_of_the_nonce():
    """RFC 2104 by hand: H((K ^ opad) + H((K ^ ipad) + text)), blocks of 64 bytes."""
    key = hashlib.sha256(b"token").hexdigest().encode()
    inner = bytes(k ^ 0x36 for k in key) + b"headway try 1 abc 2.5"
    outer = bytes(k ^ 0x5C for k in key) + hashlib.sha256(inner).digest()
    assert wire.proof(key.decode(), "abc", 2.5) == hashlib.sha256(outer).hexdigest()
    assert wire.proof(key.decode(), "abc", 2) == wire.proof(key.decode(), "abc", 2.0)


def test_a_proof_for_other_seconds_or_of_another_connection_is_refused(tmp_path):
    token = new("laptop", tmp_path / "tokens")
    key = hashlib.sha256(token.encode()).hexdigest()
    with serving(Tokens(tmp_path / "tokens")) as (port, _):
        for nonce, seconds in ((None, 0.2), ("0" * 32, 0.1)):
            client, hello = connected(port)
            with client:
                made = wire.proof(key, nonce or hello["nonce"], seconds)
                wire.send(client, {"seconds": 0.1, "proof": made}, DEADLINE_S)
                assert wire.receive(client, DEADLINE_S)["error"] == "the token is not known there"


def test_beyond_loopback_tokens_that_only_their_owner_reads_are_needed(tmp_path):
    file = tmp_path / "tokens"
    with pytest.raises(UsageError, match=r"--bind 0.0.0.0: beyond loopback it needs --tokens FILE"):
        tokens_for("0.0.0.0", None)
    assert tokens_for("127.0.0.1", None) is None
    assert tokens_for("::1", None) is None
    new("laptop", file)
    assert tokens_for("0.0.0.0", file) is not None
    file.chmod(0o640)
    with pytest.raises(UsageError, match="others may read it"):
        tokens_for("0.0.0.0", file)


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (b'{"seconds": 61}\n', b"seconds must be above 0 and at most 60"),
        (b'{"seconds": 0}\n', b"seconds must be above 0 and at most 60"),
        (b'{"seconds": NaN}\n', b""),
        (b'{"seconds": 1e999}\n', b""),
        (b'{"seconds": true}\n', b""),
        (b'{"seconds": "1"}\n', b""),
        (b'{"seconds": ' + b"9" * 900 + b"}\n", b""),
        (b"[" * 1000 + b"\n", b""),
        (b"GET / HTTP/1.1\r\n\r\n", b""),
        (b"\xff\n", b""),
        (b"x" * 5000, b""),
    ],
)
def test_what_is_no_request_ends_its_connection_and_nothing_else(said, answer):
    with serving() as (port, _):
        client, _ = connected(port)
        with client:
            client.sendall(said)
            assert answer in (came := rest_of(client))
            assert bool(came) == bool(answer)
        assert send(port).bytes > 0


def test_a_client_that_asks_nothing_is_cut_off():
    with serving(handshake_s=0.1) as (port, _):
        client, _ = connected(port)
        with client:
            assert rest_of(client) == b""


def test_connections_of_a_client_are_counted():
    with serving(of_a_client=2) as (port, _):
        first, _ = connected(port)
        second, _ = connected(port)
        with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as third:
            assert rest_of(third) == b""
        first.close()
        second.close()
        until(lambda: greets(port))


def greets(port):
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as client:
        client.settimeout(DEADLINE_S)
        return bool(client.recv(1))


def until(holds):
    end = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


@contextmanager
def transferring(port):
    """A client whose transfer has begun."""
    client, _ = connected(port)
    with client:
        wire.send(client, {"seconds": 60.0}, DEADLINE_S)
        assert wire.receive(client, DEADLINE_S) == {"ok": True}
        yield client


def test_one_transfer_at_a_time(monkeypatch):
    monkeypatch.setattr(transfer, "BUSY_S", 0.0)
    says = "another transfer is running there"
    with serving() as (port, _), transferring(port), pytest.raises(BusyError, match=says):
        send(port)


def test_a_transfer_waits_until_the_client_of_another_one_has_left(monkeypatch):
    """It has been refused once at least when the other one leaves."""
    assert Limits.silence_s < transfer.BUSY_S
    monkeypatch.setattr(transfer, "BUSY_S", DEADLINE_S)
    monkeypatch.setattr(transfer, "BUSY_LOOK_S", 0.01)
    with serving() as (port, _), transferring(port) as other:
        answers, receive = [], wire.receive

        def noted(*arguments):
            answers.append(receive(*arguments))
            if "error" in answers[-1]:
                other.close()
            return answers[-1]

        monkeypatch.setattr(transfer, "wire", SimpleNamespace(**vars(wire) | {"receive": noted}))
        assert send(port).bytes > 0
    assert "error" in answers[1]


def test_a_server_that_is_busy_is_no_failure_of_the_controller(tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "PATIENCE_S", 0.0)
    kept, said = Transfers(5, [None, None, BusyError("busy")]).run(tmp_path)
    assert kept.failures == {}
    assert "busy; this round does not count" in said


def test_idle_connections_keep_nobody_out():
    with serving(connections=2) as (port, _):
        first, _ = connected(port)
        second, _ = connected(port)
        with first, second:
            assert send(port).bytes > 0
            assert rest_of(first) == b""
            assert second.fileno() > 0


def test_idle_connections_do_not_end_a_transfer():
    with serving(connections=1) as (port, _), transferring(port) as client:
        first, _ = connected(port)
        second, _ = connected(port)
        with first, second:
            assert rest_of(first) == b""
            client.sendall(bytes(1000))
            client.shutdown(socket.SHUT_WR)
            assert wire.receive(client, DEADLINE_S) == {"bytes": 1000}


def ends_when_asked(port, asked):
    with pytest.raises(EndedError):
        Sender("127.0.0.1", port).send("reno", "reno", 0.1, asked)


def test_ctrl_c_ends_the_wait_for_a_connection():
    """The queue of this server is full, so no connection comes about."""
    asked = threading.Event()
    asked.set()
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        with socket.create_connection(listening.getsockname()):
            ends_when_asked(listening.getsockname()[1], asked)


@pytest.mark.parametrize("says", [0, 1, 2])
def test_ctrl_c_ends_the_wait_for_what_the_other_side_does_not_say(says):
    """It says so many of: its greeting, its answer, and how many bytes came."""
    greeting = {"headway_try": wire.SCHEMA, "nonce": "1", "needs_token": False, "most_seconds": 60}
    asked, ended = threading.Event(), threading.Event()

    def other():
        client, _ = listening.accept()
        with client:
            if says > 0:
                wire.send(client, greeting, DEADLINE_S)
                wire.receive(client, DEADLINE_S)
            if says > 1:
                wire.send(client, {"ok": True}, DEADLINE_S)
                while client.recv(1 << 20):
                    pass
            asked.set()
            ended.wait(DEADLINE_S)

    with listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=other)
        thread.start()
        ends_when_asked(listening.getsockname()[1], asked)
        ended.set()
        thread.join(DEADLINE_S)
        assert not thread.is_alive()


@pytest.mark.parametrize("limits", [{"bytes": 1000}, {"silence_s": 0.1}])
def test_a_transfer_beyond_its_limits_is_ended(limits):
    with serving(**limits) as (port, told), transferring(port) as client:
        if "bytes" in limits:
            client.sendall(bytes(2000))
        assert rest_of(client) == b""
    assert told == []


@pytest.mark.usefixtures("has_cubic")
def test_nobody_there_is_said_with_what_to_start(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        words = ["try", "--to", f"127.0.0.1:{closed.getsockname()[1]}", "--schemes", "cubic,reno"]
        assert command([*words, "--seconds", "0.1", "--minutes", "0.01"]) == 1
    *_, last = capsys.readouterr().err.splitlines()
    assert "Connection refused; start the other side there: headway try --serve" in last


def test_another_service_is_no_server():
    with listen("127.0.0.1", 0) as listening:

        def other():
            client, _ = listening.accept()
            with client:
                client.sendall(b"SSH-2.0-x\r\n")

        thread = threading.Thread(target=other)
        thread.start()
        with pytest.raises(RunError, match="not a line of headway try"):
            send(listening.getsockname()[1])
        thread.join(DEADLINE_S)


@pytest.mark.usefixtures("has_cubic")
def test_a_folder_has_one_trial_at_a_time(tmp_path, capsys):
    words = ["try", "--to", "127.0.0.1:1", "--schemes", "cubic,reno", "--out", str(tmp_path)]
    with alone_in(tmp_path):
        assert command(words) == 2
    assert "another headway command is at work there" in capsys.readouterr().err


@pytest.mark.usefixtures("has_cubic")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_keeps_what_has_finished(tmp_path, number, code):
    rows = tmp_path / ROWS
    with serving() as (port, _):
        words = ["try", "--to", f"127.0.0.1:{port}", "--schemes", "cubic,reno", "--seconds", "0.1"]
        child = subprocess.Popen(
            [sys.executable, "-m", "headway", *words, "--minutes", "60", "--out", tmp_path],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            until(lambda: child.poll() is not None or (rows.exists() and rows.stat().st_size))
            child.send_signal(number)
            printed, said = child.communicate(timeout=DEADLINE_S)
        finally:
            child.kill()
            child.wait()
    assert child.returncode == code, said
    *_, last = said.splitlines()
    where = f"they are in {tmp_path}, and the same command goes on from there"
    assert re.fullmatch(rf"headway: interrupted: \d+ transfers finished; {re.escape(where)}", last)
    assert "throughput Mbit/s" in printed
    assert all(json.loads(line) for line in rows.read_text().splitlines())


def test_a_server_ends_well_when_it_is_asked_to():
    child = subprocess.Popen(
        [sys.executable, "-m", "headway", "try", "--serve", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"COLUMNS": "80"},
    )
    try:
        ready = child.stdout.readline()
        assert (found := re.fullmatch(r"headway try: receives at 127\.0\.0\.1:(\d+); .*\n", ready))
        assert send(int(found[1])).bytes > 0
        child.send_signal(signal.SIGTERM)
        printed, said = child.communicate(timeout=DEADLINE_S)
    finally:
        child.kill()
        child.wait()
    assert (child.returncode, printed, said.count("\n")) == (0, "", 1), said
