"""Each fault of an agent, on live flows of each controller.

No flow stalls, and all do as well as Cubic. The controllers suffer a fault side by side, each on a
link of its own, and plain Cubic has one beside them. A learner suffers four of the faults too.
"""

import signal
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import daemon
from kernel import judge, path
from kernel.agents import seen
from kernel.judge import AFTER_S
from kernel.models import write_noise, write_policy

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("bpf", "ahead")]

CONTROLLERS = ("headway_owl", "headway_window", "headway_rate", "headway_bbr")
LEARNER = "rax-pretrained"
LEARNERS_CONTROLLER = "headway_rax"
"""headway_window by another name: there is one of each name."""
FAULTS = {"killed": (), "stopped": (), "slow": (), "noise": (), "slots": ("--flows", "1"), "ring": ("--ring", "16")}
"""By what they need of headwayd. 16 KiB hold 146 records: at 20 Mbit/s 0.2 s of them."""
LEARNERS_FAULTS = ("killed", "stopped", "slow", "ring")
"""Noise replaces a model; and what a learner has in one queue with flows of Cubic is not the
fault's."""
FLOWS = {"slots": 3}
BEFORE_S = 4.0
PROBATION_S = 10.0
"""The guard's first."""
PATIENCE_S = 12.0
"""The guard may take this time to see that a policy is no good."""
LASTS = {"noise": PATIENCE_S, "stopped": PROBATION_S + 3}
"""Seconds more than others."""
SLOW = {"up": "2Mbps", "down": "2Mbps"}
"""167 packets a second: every answer is there at the next acknowledgement."""
STOPS_S = 5.0
RETURNS_S = 3.0
"""After the probation. Returning takes an acknowledgement and an answer."""


@dataclass
class Suffering:
    """An agent and its flows, and what became of them."""

    controller: str
    folder: Path
    agent: daemon.Daemon
    flow: path.Flow
    since: float = 0.0
    """When the fault began."""
    tripped: float | None = None
    """When the guard was seen to have the flow that noise steered."""
    before: dict = field(default_factory=dict)
    after: dict = field(default_factory=dict)
    returned: dict = field(default_factory=dict)

    def sending(self):
        return [flow for flow in self.agent.status()["flows"] if flow["delivered_packets"] > 10]

    def judged(self):
        """From when on its flows are: the fault, and what the guard made of it."""
        return [self.since, *([self.tripped] if self.tripped else [])]

    def suffer(self, fault):
        """The fault begins."""
        (self.before, *_) = self.sending()
        if fault == "killed":
            self.agent.kill()
        elif fault == "noise":
            write_noise(self.folder, self.controller)
            assert self.agent.ask("reload").returncode == 0
        elif fault != "slots":
            self.agent.signal(signal.SIGSTOP)
        self.since = time.monotonic()


def wait_for_trips(all_):
    """The guard has to see it in what becomes of a flow; noise may be good enough."""
    until = time.monotonic() + PATIENCE_S
    waiting = list(all_)
    while waiting and time.monotonic() < until:
        for one in list(waiting):
            if one.sending()[0]["guard"] == "cubic":
                one.tripped = time.monotonic()
                waiting.remove(one)
        time.sleep(0.05)


def hold(all_, fault, until):
    """The fault lasts."""
    while time.monotonic() < until:
        if fault != "slow":
            time.sleep(until - time.monotonic())
            return
        # They run for 5 ms in each second: answers come up to a second late.
        time.sleep(1)
        for one in all_:
            one.agent.signal(signal.SIGCONT)
        time.sleep(0.005)
        for one in all_:
            one.agent.signal(signal.SIGSTOP)


def policy_of(sufferer, folder):
    """The controller's name, and what its agent runs."""
    if sufferer == LEARNER:
        return LEARNERS_CONTROLLER, ["--policy", LEARNER, "--name", LEARNERS_CONTROLLER]
    write_policy(folder, sufferer)
    return sufferer, ["--policy", f"learned:model={folder}", "--controllers", sufferer]


@pytest.fixture(scope="module", params=FAULTS)
def suffered(request, tmp_path_factory):
    """A fault, what all flows had of it, and the flow of plain Cubic beside them."""
    fault, place = request.param, tmp_path_factory.mktemp(request.param)
    # They begin one after the other.
    lasts = 6 + BEFORE_S + AFTER_S + 2 + LASTS.get(fault, 0)
    with ExitStack() as stack:
        all_ = {}
        for sufferer in CONTROLLERS + (LEARNER,) * (fault in LEARNERS_FAULTS):
            folder = place / sufferer
            controller, options = policy_of(sufferer, folder)
            agent = stack.enter_context(daemon.Daemon(*options, *FAULTS[fault]))
            flow = stack.enter_context(path.flow(place, controller, lasts, flows=FLOWS.get(fault, 1)))
            all_[sufferer] = Suffering(controller, folder, agent, flow)
        cubic = stack.enter_context(path.flow(place, "cubic", lasts))
        cubic.wait(BEFORE_S)
        for one in all_.values():
            one.suffer(fault)
        if fault == "noise":
            wait_for_trips(all_.values())
        last = max(one.tripped or one.since for one in all_.values())
        hold(all_.values(), fault, last + AFTER_S + 0.3)
        if fault != "killed":
            for one in all_.values():
                one.agent.signal(signal.SIGCONT)
            time.sleep(0.5)
            for one in all_.values():
                one.after = one.agent.status()
        if fault == "stopped":
            time.sleep(max(0.0, last + PROBATION_S + 3 - time.monotonic()))
            for one in all_.values():
                one.returned = one.agent.status()
    return fault, all_, cubic


@pytest.mark.parametrize("sufferer", CONTROLLERS)
def test_no_flow_stalls_after_a_fault(suffered, sufferer):
    fault, all_, _ = suffered
    one = all_[sufferer]
    for since in one.judged():
        judge.none_stalls(one.flow, since, FLOWS.get(fault, 1))


@pytest.mark.parametrize("sufferer", CONTROLLERS)
def test_all_flows_do_as_well_as_cubic_after_a_fault(suffered, sufferer):
    fault, all_, cubic = suffered
    one = all_[sufferer]
    for since in one.judged():
        # That a policy is no good takes the guard seconds to see, in which the flow has what it
        # gives. From the fault on it is judged by those and what follows them, or by as long as the
        # guard is given.
        is_unseen = fault == "noise" and since == one.since
        until = since + AFTER_S
        if is_unseen:
            until = one.tripped + AFTER_S if one.tripped else since + PATIENCE_S
        cubics_mbps = judge.cubics(cubic, since, until)
        least = judge.LEAST_UNSEEN if is_unseen else judge.LEAST
        judge.does_as_well(one.flow, since, cubics_mbps, least, until)


@pytest.mark.parametrize("sufferer", CONTROLLERS)
def test_faulty_flows_are_given_to_cubic(suffered, sufferer):
    """Where no answer came, as their windows say, and the guard where there is somebody to ask."""
    fault, all_, _ = suffered
    one = all_[sufferer]
    counters = one.after.get("counters", {})
    if fault == "slots":
        assert counters["slots_full"] >= 2
        assert counters["flows"] == 1
        return
    assert one.before["guard"] == "policy"
    if fault == "noise":
        print(counters["guard_trips_by_reason"])
        # The agent answers all the time: what it says is what is wrong.
        assert counters["guard_trips_by_reason"]["stale"] == 0
        assert counters["guard_trips"] >= (one.tripped is not None)
        return
    judge.fills_as_cubic(one.flow, one.since, path.HOLDS)
    if fault == "killed":
        # New sockets have others.
        assert one.controller not in daemon.registered()
        return
    (flow,) = (flow for flow in one.after["flows"] if flow["flow"] == one.before["flow"])
    assert flow["guard"] == "cubic"
    assert counters["guard_trips_by_reason"]["stale"] == counters["guard_trips"] == 1
    assert (counters["ring_dropped"] > 100) == (fault == "ring")


@pytest.mark.parametrize("sufferer", CONTROLLERS)
@pytest.mark.parametrize("suffered", ["stopped"], indirect=True)
def test_a_resumed_agent_gets_its_flows_back(suffered, sufferer):
    """After the probation, for each policy."""
    _, all_, cubic = suffered
    one = all_[sufferer]
    (flow,) = (flow for flow in one.returned["flows"] if flow["flow"] == one.before["flow"])
    assert (flow["guard"], flow["guard_trips"]) == ("policy", 1)
    assert one.returned["counters"]["guard_returns"] == 1
    since, until = one.since + PROBATION_S + 0.5, one.since + PROBATION_S + 3
    assert one.flow.mbps(since, until) > 0.7 * cubic.mbps(since, until)


@pytest.mark.parametrize("suffered", LEARNERS_FAULTS, indirect=True)
def test_a_learner_flow_survives_a_fault(suffered):
    test_no_flow_stalls_after_a_fault(suffered, LEARNER)
    test_all_flows_do_as_well_as_cubic_after_a_fault(suffered, LEARNER)
    test_faulty_flows_are_given_to_cubic(suffered, LEARNER)
    if suffered[0] == "stopped":
        test_a_resumed_agent_gets_its_flows_back(suffered, LEARNER)


@pytest.mark.parametrize(("policy", "controller"), [("owl", "headway_owl"), (LEARNER, "headway_window")])
def test_a_slow_flow_returns_at_an_acknowledgement_that_has_an_answer(tmp_path, policy, controller):
    with daemon.Daemon("--policy", policy) as agent, path.flow(tmp_path, controller, path.LASTS_S, **SLOW) as flow:
        flow.wait(1)
        begun = agent.status()["counters"]
        flow.wait(1 + BEFORE_S)
        counters = agent.status()["counters"]
        answers, records = (counters[what] - begun[what] for what in ("actions", "reports"))
        print(f"{answers} answers to {records} acknowledgements")
        assert answers > 0.9 * records, "it could return at an acknowledgement without one"
        one = seen(agent)
        assert (one["guard"], one["guard_trips"]) == ("policy", 0)
        agent.signal(signal.SIGSTOP)
        since = time.monotonic()
        time.sleep(STOPS_S)
        agent.signal(signal.SIGCONT)
        one = seen(agent, lambda one: one["guard"] == "cubic")
        assert (one["guard_trips"], one["guard_reason"]) == (1, "stale")
        one = seen(agent, lambda one: one["guard"] == "policy")
        took_s = time.monotonic() - since
        print(f"it returns {took_s:.2f} s after the fault")
        assert one["guard_trips"] == agent.status()["counters"]["guard_returns"] == 1
        assert took_s < PROBATION_S + RETURNS_S
