"""Hosts and agents in one process: refusals, errors, and counters."""

import asyncio
import itertools
import socket
import time
from contextlib import suppress
from dataclasses import replace

import msgspec
import pytest
import zmq
import zmq.asyncio

from headway._native import RunError, UsageError, tunables
from headway.cli.tune import _show
from headway.models import load
from headway.tune import agent as agents
from headway.tune import keys, link, messages
from headway.tune.agent import Agent, start
from headway.tune.host import Host, HostOptions
from headway.tune.messages import Error, Heartbeat, Hello, Observations, Reader, Stats, encode
from headway.tune.policy import Fixed
from headway.tune.simulated import MadeUpFlows, SimulatedFlows
from headway.tune.table import COLUMNS

TUNED = {"rtprop_window": 2.0, "btlbw_window": 4.0}
DEFAULT = {"rtprop_window": 10.0, "btlbw_window": 10.0}
QUICK = HostOptions("h", t1_s=0.02, t2_s=0.1, restore_after_s=5.0)
"""A machine that stalls for this time looks like a missing agent."""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWAY_KEYS", str(tmp_path / "keys"))
    return tmp_path


@pytest.fixture
def url():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{one.getsockname()[1]}"


def secure(**given):
    return link.security(**{"key": None, "peers": None, "insecure": False, "urls": [link.DEFAULT]} | given)


def run(test, seconds=180):
    """Runs the test's body in an event loop, and ends everything that it has started."""

    async def within():
        async with asyncio.timeout(seconds):
            async with Started() as started:
                await test(started)

    asyncio.run(within())


class Started:
    async def __aenter__(self):
        self.tasks, self.contexts = [], []
        return self

    async def __aexit__(self, *_):
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for context in self.contexts:
            context.destroy(0)

    async def agent(self, url, safe, policy=None, **options):
        one = Agent(options.pop("name", "a"), policy or Fixed(TUNED), url, safe, **options)
        self.tasks.append(await start(one))
        return one

    def host(self, url, safe, options=QUICK, flows=None, to=None):
        flows = flows or MadeUpFlows(2, seed=1)
        one = Host(options, flows, flows, to or [link.endpoint(url, "--agent", safe)], safe)
        self.tasks.append(asyncio.create_task(one.run()))
        return one, flows

    def dealer(self, url, safe, public=None):
        """A client that sends any bytes."""
        self.contexts.append(zmq.asyncio.Context())
        to = link.endpoint(url, "--agent", safe)
        return link.dealer(self.contexts[-1], replace(to, public=public or to.public), safe, reconnects=True)


async def until(holds, seconds=60.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it does not happen"
        await asyncio.sleep(0.02)


def are(flows, settings):
    return all(windows == settings for windows in flows.windows.values())


async def said(dealer):
    assert await dealer.poll(60_000), "no answer"
    return Reader().decode(await dealer.recv())


def test_a_host_is_tuned_restored_and_tuned_again(url):
    async def body(started):
        safe = secure()
        one = await started.agent(url, safe)
        host, flows = started.host(url, safe)
        await until(lambda: are(flows, TUNED))
        assert host.counters["restores_start"] == 1
        started.tasks[0].cancel()
        await until(lambda: are(flows, DEFAULT))
        assert host.counters["agent_goodbyes"] == 1
        assert host.counters["restores_silence"] == 1
        assert host.status()["restored_after_s"] >= QUICK.restore_after_s
        await asyncio.gather(started.tasks[0], return_exceptions=True)
        again = await started.agent(url, safe)
        assert again.instance != one.instance
        await until(lambda: are(flows, TUNED))
        # Each assigned number is accounted for.
        counted, waiting = host.counters, host.status()["waiting"]
        kinds = ("stats_answered", "stats_superseded", "stats_refused", "stats_lost", "stats_unsent")
        assert sum(counted[kind] for kind in kinds) + waiting == host.status()["sequence"]
        assert host.counters["restores_silence"] == 1, "once"
        started.tasks[1].cancel()
        await asyncio.gather(started.tasks[1], return_exceptions=True)
        assert are(flows, DEFAULT), "who ends by intent restores too"
        await until(lambda: again.counters["hosts_left"] == 1)

    run(body)


def test_a_status_shows_brackets_as_they_are(capsys):
    safe, flows = secure(insecure=True), MadeUpFlows(2, seed=1)
    to = [link.endpoint("tcp://[fd00::1]:5757", "--agent", safe)]
    status = Host(replace(QUICK, name="x[/]"), flows, flows, to, safe).status()
    _show(status | {"flows": [{"flow": "[fe80::2]:443", "settings": TUNED, "rtt_ms": 20.0}]})
    printed = capsys.readouterr().out
    for shown in ("host x[/]", "agent tcp://[fd00::1]:5757,", "[fe80::2]:443"):
        assert shown in printed


def test_the_next_agent_takes_over_when_the_first_ends(url):
    async def body(started):
        safe = secure()
        await started.agent(url, safe)
        nobody = link.endpoint("tcp://127.0.0.1:9", "--agent", safe)
        host, flows = started.host(url, safe, to=[nobody, link.endpoint(url, "--agent", safe)])
        await until(lambda: are(flows, TUNED))
        assert host.counters["connections"] >= 2

    run(body)


def test_only_listed_keys_are_served(url, place):
    async def body(started):
        for name in ("agent", "good", "bad"):
            keys.new(name, place / "keys")
        (place / "peers").mkdir()
        (place / "peers" / "good.key").write_bytes((place / "keys" / "good.key").read_bytes())
        safe = secure(key="agent", peers=place / "peers")
        one = await started.agent(url, safe)
        public = f"{url}={place / 'keys' / 'agent.key'}"
        good, flows = started.host(public, secure(key="good"), replace(QUICK, name="good"))
        await until(lambda: are(flows, TUNED))
        # The cases are: a key that is not on the list; a right one for a wrong agent; no key at
        # all.
        bad, others = started.host(public, secure(key="bad"), replace(QUICK, name="bad"))
        wrong = f"{url}={place / 'keys' / 'bad.key'}"
        lost, _ = started.host(wrong, secure(key="good"), replace(QUICK, name="lost"))
        plain, _ = started.host(url, secure(insecure=True), replace(QUICK, name="plain"))
        before = good.counters["stats_answered"]
        await until(lambda: one.status()["keys"].get("refused", 0) >= 1 and one.counters["handshakes_failed"] >= 3)
        await until(lambda: good.counters["stats_answered"] > before + 3)
        assert [host["name"] for host in one.status()["hosts"]] == ["good"]
        assert are(others, DEFAULT)
        for host in (bad, lost, plain):
            assert host.counters["settings"] == 0
            assert host.counters["connections"] >= 1

    run(body)


def test_garbage_and_old_schemas_are_refused_and_counted_and_others_are_served(url):
    async def body(started):
        safe = secure()
        one = await started.agent(url, safe)
        host, _ = started.host(url, safe)
        await until(lambda: host.counters["stats_answered"] > 0)
        # These bytes are not ZeroMQ.
        for noise in (b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)) * 100):
            address, port = url.removeprefix("tcp://").split(":")
            _, writer = await asyncio.open_connection(address, int(port))
            writer.write(noise)
            writer.close()
        await until(lambda: one.counters["connections"] >= 3 and one.counters["disconnections"] >= 2)
        # Connections that are not ZeroMQ had no handshake.
        assert one.counters["handshakes"] <= one.counters["connections"] - 2
        dealer = started.dealer(url, safe)
        old = msgspec.msgpack.encode({"type": "hello", "schema": 0, "name": "old"})
        for data, code in ((old, "schema"), (b"\xff\xff", "invalid"), (b"", "invalid")):
            await dealer.send(data)
            assert (await said(dealer)).code == code
        await dealer.send(encode(Stats(host="x", instance="1", sequence=1, columns=[], flows={})))
        assert (await said(dealer)).code == "unknown"
        assert one.status()["refused"] == {"schema": 1, "garbage": 2}
        before = host.counters["stats_answered"]
        await until(lambda: host.counters["stats_answered"] > before + 2)
        dealer.close(0)

    run(body)


def test_too_large_a_message_ends_that_connection_alone(url):
    async def body(started):
        safe = secure()
        one = await started.agent(url, safe)
        host, _ = started.host(url, safe)
        dealer = started.dealer(url, safe)
        await dealer.send(encode(Heartbeat(sequence=1)))
        await said(dealer)
        await dealer.send(bytes(messages.LARGEST + 1))
        before = host.counters["stats_answered"]
        await until(lambda: host.counters["stats_answered"] > before + 2)
        assert sum(one.status()["refused"].values()) == 0, "it was never read"
        dealer.close(0)

    run(body)


def test_a_client_that_sends_too_much_is_throttled(url):
    async def body(started):
        safe = secure()
        one = await started.agent(url, safe)
        host, _ = started.host(url, safe)
        await until(lambda: host.counters["stats_answered"] > 0)
        dealer = started.dealer(url, safe)
        await dealer.poll(300)

        async def talk():
            for n in itertools.count():
                with suppress(zmq.Again):
                    await dealer.send(encode(Heartbeat(sequence=n)), zmq.NOBLOCK)
                await asyncio.sleep(0.001)

        talking = asyncio.create_task(talk())
        await until(lambda: one.counters["messages_throttled"] > 500)
        talking.cancel()
        before = host.counters["stats_answered"]
        await until(lambda: host.counters["stats_answered"] > before + 2)
        dealer.close(0)

    run(body)


def test_two_hosts_of_one_name_do_not_take_turns(url):
    async def body(started):
        safe = secure()
        one = await started.agent(url, safe)
        first, _ = started.host(url, safe)
        await until(lambda: first.counters["stats_answered"] > 0)
        second, flows = started.host(url, safe)
        await until(lambda: second.counters["errors_refused"] > 0)
        assert one.counters["names_taken"] > 0
        assert one.counters["hosts_restarted"] == 0
        assert are(flows, DEFAULT)
        before = first.counters["stats_answered"]
        await until(lambda: first.counters["stats_answered"] > before + 2)

    run(body)


def test_missed_and_late_statistics_are_counted(url):
    async def body(started):
        safe = secure()
        one = await started.agent(url, safe)
        dealer = started.dealer(url, safe)
        await dealer.send(encode(Hello(name="x", instance="1", parameters=["btlbw_window"])))
        assert isinstance(await said(dealer), Heartbeat)
        for sequence in (5, 6, 9, 7):
            stats = Stats(host="x", instance="1", sequence=sequence, columns=["rtt_ms"], flows={"f": [20.0]})
            await dealer.send(encode(stats))
            if sequence != 7:
                answer = await said(dealer)
                assert (answer.sequence, answer.flows) == (sequence, {"f": {"btlbw_window": 4.0}})
        await until(lambda: one.counters["stats_late"] == 1)
        assert (one.counters["stats"], one.counters["stats_missed"]) == (4, 2)
        dealer.close(0)

    run(body)


class Failing(Fixed):
    fails = True

    def decide(self, flows, others=()):
        if self.fails:
            raise ValueError("no such thing")
        return super().decide(flows, others)


def test_a_host_restores_defaults_while_the_policy_fails(url):
    async def body(started):
        safe = secure()
        policy = Failing(TUNED)
        policy.fails = False
        one = await started.agent(url, safe, policy)
        host, flows = started.host(url, safe)
        await until(lambda: are(flows, TUNED))
        policy.fails = True
        await until(lambda: are(flows, DEFAULT))
        assert host.counters["errors_policy"] == host.counters["stats_refused"] > 1, "the agent is there"
        assert one.counters["policy_failures"] > 1
        policy.fails = False
        await until(lambda: are(flows, TUNED))

    run(body)


class Wild(Fixed):
    def decide(self, flows, others=()):
        del others
        return [{"rtprop_window": 1e9} for _ in flows]


def test_settings_beyond_their_range_are_not_applied(url):
    async def body(started):
        safe = secure()
        one = await started.agent(url, safe, Wild(TUNED))
        host, flows = started.host(url, safe)
        await until(lambda: one.rules.rejected["action"] > 2 and host.counters["stats_answered"] > 0)
        assert are(flows, DEFAULT)

    run(body)


class Stuck(MadeUpFlows):
    """A tuner whose headwayd is missing for a while."""

    is_stuck = False

    def apply(self, flow, settings):
        if self.is_stuck:
            raise RunError("no headwayd")
        return super().apply(flow, settings)


def test_a_restore_that_fails_is_tried_again(url):
    async def body(started):
        safe = secure()
        await started.agent(url, safe)
        stuck = Stuck(2, seed=1)
        host, _ = started.host(url, safe, flows=stuck)
        await until(lambda: are(stuck, TUNED))
        stuck.is_stuck = True
        started.tasks[0].cancel()
        await until(lambda: host.counters["restores_failed"] > 1)
        assert are(stuck, TUNED)
        stuck.is_stuck = False
        await until(lambda: are(stuck, DEFAULT))
        # A machine that stalled for five seconds has restored them before.
        assert host.counters["restores_silence"] >= 1

    run(body)


class Looking(Fixed):
    """Records the flows in the table."""

    def __init__(self, settings):
        super().__init__(settings)
        self.rows, self.seen = 8, 0

    def decide(self, flows, others=()):
        self.seen = max(self.seen, len(others))
        return super().decide(flows, others)


def test_neighbours_flows_fill_the_table(url):
    async def body(started):
        safe = secure()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            beside = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        looking = Looking(TUNED)
        one = await started.agent(url, safe, looking)
        to = link.endpoint(url, "--neighbours", safe)
        other = await started.agent(beside, safe, name="b", neighbours=[to], share_every_s=0.1)
        started.host(url, safe)
        started.host(beside, safe, replace(QUICK, name="far"), MadeUpFlows(5, seed=9))
        await until(lambda: looking.seen == 5)
        (told,) = one.status()["neighbours"]
        assert (told["name"], told["flows"]) == ("b", 5)
        assert one.counters["neighbours_rows"] > 0
        assert other.counters["shares_sent"] > 0

    run(body)


def test_observations_of_an_unlisted_agent_are_ignored(url, place):
    async def body(started):
        for name in ("agent", "host"):
            keys.new(name, place / "keys")
        (place / "peers").mkdir()
        (place / "peers" / "host.key").write_bytes((place / "keys" / "host.key").read_bytes())
        one = await started.agent(url, secure(key="agent", peers=place / "peers"))
        dealer = started.dealer(f"{url}={place / 'keys' / 'agent.key'}", secure(key="host"))
        shared = Observations(agent="x", instance="1", sequence=1, columns=list(COLUMNS), flows={})
        await dealer.send(encode(shared))
        await until(lambda: one.counters["shares_of_strangers"] == 1)
        assert not one.status()["neighbours"]
        dealer.close(0)

    run(body)


def test_flows_with_impossible_rows_get_the_defaults(url):
    async def body(started):
        safe = secure()
        one = await started.agent(url, safe)
        dealer = started.dealer(url, safe)
        await dealer.send(encode(Hello(name="x", instance="1", parameters=list(TUNED))))
        await said(dealer)
        columns = ["rtt_ms", "throughput_mbps"]
        flows = {"good": [20.0, 5.0], "rtt": [-1.0, 5.0], "rate": [20.0, 1e9], "unknown": [20.0, None]}
        await dealer.send(encode(Stats(host="x", instance="1", sequence=1, columns=columns, flows=flows)))
        answer = await said(dealer)
        assert answer.flows == {"good": TUNED, "unknown": TUNED, "rtt": DEFAULT, "rate": DEFAULT}
        assert one.status()["rejected"] == {"rtt": 1, "rate": 1}
        # A neighbour's rows are judged as well.
        shared = Observations(agent="b", instance="1", sequence=1, columns=columns, flows=flows)
        await dealer.send(encode(shared))
        await until(lambda: one.counters["shares"] == 1)
        (told,) = one.status()["neighbours"]
        assert told["flows"] == 2
        assert one.status()["rejected"] == {"rtt": 2, "rate": 2}
        dealer.close(0)

    run(body)


def test_simulated_flows_have_every_choice_of_the_shipped_models():
    for name in ("ppo", "dqn", "a2c"):
        for seconds, rounds in load(f"bbr-tuner-{name}-v1").card["agent"]["action"]["choices"]:
            flows = SimulatedFlows(seed=3)
            wanted = {"rtprop_window": seconds, "btlbw_window": rounds}
            assert flows.apply("*", wanted)
            assert all(windows == wanted for windows in flows.windows.values())


def test_any_scheme_with_tunable_parameters_is_tuned(url):
    """Cubic declares beta and c; nothing but the name of the controller differs from BBR."""
    sampled = SimulatedFlows(seed=3, controller="cubic").sample()
    assert all(one.btlbw_mbps is None for one in sampled), "Cubic has no model of its path"

    async def body(started):
        safe = secure()
        wanted = {"beta": 0.5, "c": 0.8}
        await started.agent(url, safe, Fixed(wanted))
        flows = SimulatedFlows(seed=3, controller="cubic")
        host, _ = started.host(url, safe, flows=flows)
        await until(lambda: host.counters["applied"] > 0 and wanted in flows.windows.values())
        started.tasks[0].cancel()
        default = {"beta": 0.7, "c": 0.4}
        await until(lambda: are(flows, default))

    run(body)


def test_no_two_schemes_have_a_tunable_parameter_of_the_same_name():
    """Messages name a parameter without its scheme."""
    names = [one["name"] for one in tunables()]
    assert len(set(names)) == len(names)


def test_a_controller_without_tunable_parameters_is_refused_in_one_line():
    with pytest.raises(UsageError, match=r"--controller 'copa': no simulated controller .*; there are bbr, cubic"):
        SimulatedFlows(controller="copa")


def test_simulated_flows_are_tuned(url):
    async def body(started):
        safe = secure()
        await started.agent(url, safe)
        flows = SimulatedFlows(seed=3)
        host, _ = started.host(url, safe, flows=flows)
        await until(lambda: host.counters["applied"] > 0 and TUNED in flows.windows.values())
        sampled = host.status()["flows"]
        assert sampled
        assert all(one["rtt_ms"] > 9 for one in sampled)
        assert not host.rules.rejected

    run(body)


class WatchedFlows(SimulatedFlows):
    """Records the delivered bytes of each flow in every sample."""

    def __init__(self, **options):
        self.delivered = {}
        super().__init__(**options)

    def sample(self):
        found = super().sample()
        for one in found:
            self.delivered.setdefault(one.flow, []).append((one.time_s, one.acked_bytes))
        return found


def test_no_simulated_flow_stalls_while_agents_come_and_go(url):
    async def body(started):
        safe = secure()
        await started.agent(url, safe)
        # A sample is a twentieth of a second of the flow's time, for any clock of the machine.
        flows = WatchedFlows(scenario="bbr-training-alone", t1_s=0.05, seed=3)
        host, _ = started.host(url, safe, flows=flows)
        for _ in range(2):
            await until(lambda: are(flows, TUNED))
            started.tasks[0 if len(started.tasks) == 2 else -1].cancel()
            await until(lambda: are(flows, DEFAULT))
            await asyncio.gather(*(task for task in started.tasks if task.cancelling()), return_exceptions=True)
            await started.agent(url, safe)
        await until(lambda: are(flows, TUNED))
        assert host.counters["restores_silence"] == 2
        (samples,) = flows.delivered.values()
        assert samples[-1][0] - samples[0][0] > 5
        # The slowest link of the scenario sends a packet in 12 ms, and BBR's ProbeRTT keeps four in
        # flight.
        stalls = []
        since, before = samples[0]
        for time_s, acked in samples:
            stalls.append(time_s - since)
            if acked > before:
                since, before = time_s, acked
        assert max(stalls) < 1.0
        assert flows.longest_stall_s == pytest.approx(max(stalls))
        assert not host.rules.rejected

    run(body)


def test_a_stall_lasts_until_the_next_delivery_and_an_absent_flow_does_not_stall():
    flows = SimulatedFlows()

    def at(time_s, packets):
        flows._note_stalls({"a": {"time_s": time_s, "delivered_total_packets": packets}})

    at(1.0, 10.0)
    at(1.1, 11.0)
    assert flows.longest_stall_s == pytest.approx(0.1)
    at(1.6, 11.0)
    at(2.6, 11.0)
    assert flows.longest_stall_s == pytest.approx(1.5)
    flows._note_stalls({})
    at(9.0, 11.0)
    at(9.1, 12.0)
    assert flows.longest_stall_s == pytest.approx(1.5)


def test_heartbeats_keep_a_host_that_reports_once_an_hour(url):
    async def body(started):
        safe = secure()
        one = await started.agent(url, safe)
        host, _ = started.host(url, safe, HostOptions("h", t2_s=3600.0))
        await until(lambda: one.counters["heartbeats"] >= 3)
        assert host.counters["stats_answered"] == 0, "the agent is known by its heartbeats alone"

    run(body)


def test_a_host_waits_twice_as_long_before_each_new_connection(url, monkeypatch):
    waits = []

    async def nobody_answers(_host, _socket, patience_s):
        waits.append(patience_s)
        await asyncio.sleep(0)

    monkeypatch.setattr(Host, "_listen", nobody_answers)

    async def body(started):
        started.host(url, secure())
        await until(lambda: len(waits) >= 7)

    run(body)
    for wait, mean in zip(waits, (0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0), strict=False):
        assert 0.75 * mean <= wait <= 1.25 * mean
    assert len(set(waits)) == len(waits), "hosts that lost the same agent spread out"


def test_a_silent_host_is_forgotten(url, monkeypatch):
    async def body(started):
        monkeypatch.setattr(agents, "FORGET_S", 0.5)
        safe = secure()
        one = await started.agent(url, safe)
        dealer = started.dealer(url, safe)
        await dealer.send(encode(Hello(name="x", instance="1", t2_s=0.1)))
        await said(dealer)
        await until(lambda: one.counters["hosts_forgotten"] == 1)
        await dealer.send(encode(Heartbeat(sequence=1)))
        answer = await said(dealer)
        assert isinstance(answer, Error)
        assert answer.code == "unknown"
        dealer.close(0)

    run(body)


def test_a_port_in_use_gives_a_one_line_error(url):
    async def body(started):
        await started.agent(url, secure())
        with pytest.raises(RunError, match="Address already in use"):
            await started.agent(url, secure())

    run(body)


def test_the_defaults_are_those_of_the_paper_and_linux():
    options = HostOptions("h")
    assert (options.t1_s, options.t2_s, options.restore_after_s) == (0.02, 1.0, 5.0)
    assert len(replace(options, name="x" * 128).name) == 128
    for wrong, option in (
        ({"name": ""}, "--name"),
        ({"t1_s": 0.9}, "--t1"),
        ({"restore_after_s": 1.0}, "--restore-after"),
    ):
        with pytest.raises(UsageError, match=option):
            replace(options, **wrong)
    with pytest.raises(UsageError, match="--t2"):
        HostOptions("h", t1_s=0.01, t2_s=0.02)
