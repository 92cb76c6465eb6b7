"""The files of learners. The agent writes them once flows have done well for long enough."""

import signal

import pytest

import daemon
from kernel import path
from kernel.agents import seen
from waiting import until

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("bpf")]

LEARNS = ("--policy", "owl:online=true", "--state")


def test_learned_weights_are_saved(tmp_path):
    """The agent saves every 30 s.

    It saves a state with ten judged seconds, and without a trip in the last minute.
    """
    state = tmp_path / "state"
    state.mkdir()
    for again in (False, True):
        with daemon.Daemon(*LEARNS, str(state)) as agent, path.flow(tmp_path, "headway_owl", path.LASTS_S):
            seen(agent, lambda one: one["decisions"] > 500)
            assert ("flows start from saved state" in agent.log) == again
            until(lambda: list(state.glob("*.learned")), lambda: agent.status()["flows"])
        (kept,) = state.iterdir()
        assert kept.stat().st_mode & 0o777 == 0o600
        assert kept.stat().st_size > 10_000


def test_a_full_disk_does_not_end_the_agent(tmp_path, small_disk):
    said = "cannot save what was learned"
    with daemon.Daemon(*LEARNS, str(small_disk)) as agent:
        with path.flow(tmp_path, "headway_owl", path.LASTS_S):
            until(lambda: said in agent.log, lambda: agent.status()["flows"])
        agent.signal(signal.SIGTERM)
        assert agent.process.wait(120) == 0
        (line,) = [line for line in agent.log.splitlines() if said in line]
        assert "No space left on device" in line
