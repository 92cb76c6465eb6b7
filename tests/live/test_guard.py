"""The results of flows whose agent or policy fails.

test_faults.py tests other faults on all controllers.
"""

import os
import signal
import time

import pytest

import daemon
from kernel import judge, path
from kernel.judge import AFTER_S
from kernel.models import always, put_model, write_less, write_model
from waiting import until

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("bpf", "ahead")]

PLAIN = "cubic"


@pytest.fixture
def plain(tmp_path):
    """A flow of plain Cubic at the same time, over a separate path with the same settings."""
    folder = tmp_path / "cubic"
    folder.mkdir()
    with path.flow(folder, PLAIN, path.LASTS_S) as flow:
        yield flow


def sending(status):
    return [flow for flow in status["flows"] if flow["delivered_packets"] > 10]


def judged(flow, since, plain, flows=1):
    """Checks that the flows do as well as plain Cubic in the same seconds, and none stalls."""
    flow.wait(since + AFTER_S + 0.3 - flow.begun)
    judge.no_flow_stalls(flow, since, flows)
    judge.does_as_well(flow, since, judge.cubics(plain, since, since + AFTER_S))


def run(policy, controller, *options):
    return daemon.Daemon("--policy", policy, "--controllers", controller, *options)


@pytest.mark.parametrize(
    ("options", "controller"),
    [
        (["--policy", "aurora:model=int8-v1"], "headway_rate"),
        # A tuner sets windows. A flow without requests is not stale, and continues as BBR.
        (["--controllers", "headway_bbr"], "headway_bbr"),
    ],
)
def test_an_agent_is_killed_while_no_flow_needs_it(tmp_path, plain, options, controller):
    with daemon.Daemon(*options) as agent, path.flow(tmp_path, controller, 12) as flow:
        flow.wait(4)
        agent.kill()
        judged(flow, time.monotonic(), plain)
    # No agent is left to report the guard's state, so the flow's progress decides. New sockets get
    # another controller.
    assert controller not in daemon.registered()


@pytest.mark.parametrize("controller", ["headway_owl", "headway_window"])
@pytest.mark.parametrize("head", ["always less", "always more"])
def test_the_guard_takes_over_after_a_bad_model_is_loaded(tmp_path, plain, controller, head):
    folder = tmp_path / "model"
    put_model(folder, "owl-v1")
    with run(f"learned:model={folder}", controller) as agent, path.flow(tmp_path, controller, 26) as flow:
        flow.wait(4)
        write_model(folder, *always({"always less": 0, "always more": 6}[head]))
        assert agent.ask("reload").returncode == 0
        replaced = time.monotonic()
        # The guard detects losses, which begin once the queue is full: after 3 s, or later on a
        # busy machine.
        until = replaced + 12
        while (one := sending(agent.status())[0])["guard"] == "policy" and time.monotonic() < until:
            time.sleep(0.05)
        print(f"{head}: {one['guard_reason'] or 'no trip'} after {time.monotonic() - replaced:.2f} s")
        assert one["guard"] == "cubic"
        judged(flow, time.monotonic(), plain)


def test_a_net_in_the_kernel_is_replaced_and_guarded(tmp_path, plain):
    folder = tmp_path / "model"
    put_model(folder, "aurora-int8-v1")
    with run(f"learned:model={folder}", "headway_rate") as agent, path.flow(tmp_path, "headway_rate", 16) as flow:
        flow.wait(4)
        write_less(folder)
        assert agent.ask("reload").returncode == 0
        # No agent is needed, because net and guard are both in the kernel.
        agent.signal(signal.SIGSTOP)
        replaced = time.monotonic()
        flow.wait(7)
        agent.signal(signal.SIGCONT)
        time.sleep(0.5)
        (one,) = sending(agent.status())
        assert (one["guard"], one["guard_reason"]) == ("cubic", "utility"), agent.log
        judged(flow, one["guard_judged_at_s"], plain)
        assert one["guard_judged_at_s"] - replaced < 3


def test_requests_have_room_in_a_ring_that_reports_fill(tmp_path):
    """The agent is away for 40 ms at a time, in which half of the ring fills.

    That is less than the guard's patience of 100 ms.
    """
    link = {"up": "100Mbps", "down": "100Mbps", "queue": "300pkt"}
    with run("owl", "headway_owl", "--ring", "4") as agent, path.flow(tmp_path, "headway_owl", 11, **link) as flow:
        flow.wait(3)
        before = agent.status()["counters"]["held_back"]
        while time.monotonic() < flow.begun + 9:
            agent.signal(signal.SIGSTOP)
            time.sleep(0.04)
            agent.signal(signal.SIGCONT)
            time.sleep(0.15)
        status = agent.status()
        assert status["counters"]["held_back"] > before + 100
        (one,) = sending(status)
        assert (one["guard"], one["guard_trips"]) == ("policy", 0), agent.log


def test_no_flow_stalls_when_the_agent_dies(tmp_path, plain):
    with run("owl", "headway_owl") as agent, path.flow(tmp_path, "headway_owl", 12, flows=8) as flow:
        flow.wait(4)
        assert len(sending(agent.status())) == 8
        os.kill(agent.process.pid, signal.SIGKILL)
        agent.process.wait()
        judged(flow, time.monotonic(), plain, flows=8)


def test_a_learner_has_limits_of_its_own(tmp_path):
    """The second probation of a learner is 10 s long, as the first.

    The second probation of the other flow is 20 s long.
    """
    learns = "owl:online=true"
    for name in ("plain", "learner"):
        (tmp_path / name).mkdir()
    options = ["--policy", "owl", "--policy", f"fd68:6561:6477::/48={learns}"]
    with (
        daemon.Daemon(*options) as agent,
        path.flow(tmp_path / "plain", "headway_owl", path.LASTS_S),
        path.flow(tmp_path / "learner", "headway_owl", path.LASTS_S, to="$HEADWAY_PEER6"),
    ):

        def judged_at(guard, trips):
            """The times of each flow's trip by its policy; empty until both have one."""
            flows = [one for one in sending(agent.status()) if one["decisions"] > 20]
            at = {one["policy"]: one["guard_judged_at_s"] for one in flows if one["guard"] == guard}
            return at if len(at) == 2 and all(one["guard_trips"] == trips for one in flows) else {}

        def wait(guard, trips):
            return until(lambda: judged_at(guard, trips), lambda: f"{agent.status()}\n{agent.log}")

        for trips, probations in ((1, {"owl": 10, learns: 10}), (2, {"owl": 20, learns: 10})):
            wait("policy", trips - 1)
            agent.signal(signal.SIGSTOP)
            time.sleep(1.5)
            agent.signal(signal.SIGCONT)
            tripped = wait("cubic", trips)
            back = wait("policy", trips)
            took = {policy: back[policy] - tripped[policy] for policy in back}
            print(took)
            # An acknowledgement may come late, and none comes early.
            assert all(0 <= took[policy] - probations[policy] < 5 for policy in took)
