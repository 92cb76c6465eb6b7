"""A live flow of each controller.

Its agent serves it, stops, continues and is killed, and the flow continues.
"""

import signal
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

import daemon
from kernel import path
from kernel.agents import seen
from kernel.models import write_policy
from waiting import until

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bpf", "bbr", "ahead")]

CONTROLLERS = ("headway_owl", "headway_rate", "headway_window", "headway_bbr")


@dataclass
class Served:
    """A flow, its controller, its agent, and the agent's status of it."""

    controller: str
    policy: str
    agent: daemon.Daemon
    flow: path.Flow


def policy(folder, controller):
    """A policy that the controller can carry out."""
    if controller == "headway_window":
        return "rax-pretrained"
    write_policy(folder, controller)
    return f"learned:model={folder}"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """All controllers serve at the same time."""
    place = tmp_path_factory.mktemp("smoke")
    with ExitStack() as stack:
        all_ = []
        for controller in CONTROLLERS:
            name = policy(place / controller, controller)
            agent = stack.enter_context(daemon.Daemon("--policy", name, "--controllers", controller))
            flow = stack.enter_context(path.flow(place, controller, path.LASTS_S))
            all_.append(Served(controller, name, agent, flow))
        yield all_


def test_a_stopped_agent_loses_its_flow_and_gets_it_back(served):
    for one in served:
        told = seen(one.agent, lambda told: told["decisions"] > 20 and told["guard"] == "policy")
        assert told["policy"] == one.policy
    returns = [one.agent.status()["counters"]["guard_returns"] for one in served]
    for one in served:
        one.agent.signal(signal.SIGSTOP)
    for one in served:
        # Each flow waits for an answer meanwhile, for longer than the guard's patience. The guard
        # has the flow until the probation is over.
        one.flow.outlasts(1.0)
    for one in served:
        one.agent.signal(signal.SIGCONT)
    for one in served:
        told = seen(one.agent, lambda told: told["guard_trips"] > 0)
        assert one.agent.status()["counters"]["guard_trips_by_reason"]["stale"] >= 1
    for one, before in zip(served, returns, strict=True):
        told = seen(one.agent, lambda told: told["guard"] == "policy")
        decisions = told["decisions"]
        seen(one.agent, lambda told, least=decisions: told["decisions"] > least)
        assert one.agent.status()["counters"]["guard_returns"] > before


def test_a_flow_continues_when_its_agent_is_killed(served):
    for one in served:
        one.agent.kill()
    for one in served:
        one.flow.goes_on(1000)
    until(lambda: not daemon.registered() & {*CONTROLLERS}, daemon.registered)
