"""Packet scripts at their own round trips, where time counts.

They cover HyStart, the curve, timers and BBR's pacing. docs/packet-scripts.md describes each script
and its expectations. tests/system/test_packet_scripts.py has the scripts that can be judged on a
busy machine.
"""

import gc
import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

import hystart
import needs
from packets.controllers import BASES, NAMES, UnavailableError, without_agent
from packets.flow import Flow
from packets.play import LateError, differences, play
from packets.scripts import BBR, CUBIC

pytestmark = [pytest.mark.live, pytest.mark.needs(gap_ms=10)]
"""A play itself detects its own delays. The kernel's timers may be late on another CPU."""

SUITES = {"cubic": CUBIC, "bbr": BBR}
CASES = [(base, name) for base, suite in SUITES.items() for name in suite]
OURS = [(controller, name) for controller in NAMES for name in SUITES[BASES.get(controller, "cubic")]]


@pytest.fixture(scope="module", autouse=True)
def prompt() -> Iterator[None]:
    """Gives real-time priority, where that is permitted.

    It also prevents long garbage collections. A whole test run holds so many objects that one takes
    longer than RTTs may vary before slow start ends.
    """
    gc.collect()
    gc.freeze()
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    yield
    with suppress(PermissionError):
        os.sched_setscheduler(0, *before)
    gc.unfreeze()


@pytest.fixture(scope="module", autouse=True)
def hystart_is_on() -> Iterator[None]:
    """Switches HyStart on, whatever the machine's setting."""
    with ExitStack() as stack:
        with suppress(OSError):
            stack.enter_context(hystart.switched(on=True))
        yield


@pytest.fixture(scope="module")
def ours() -> Iterator[list[str]]:
    """Our controllers, without an agent."""
    with ExitStack() as stack:
        try:
            names = stack.enter_context(without_agent())
        except UnavailableError as why:
            needs.skip("bpf", f"our controllers without an agent: {why}")
        yield names


@pytest.fixture(scope="module")
def references() -> dict[tuple[str, str], Flow]:
    """Runs of the kernel's own controllers, by script. A script is played once for them."""
    return {}


def flow_of(controller: str, base: str, name: str) -> Flow:
    """A play without delays."""
    try:
        return play(SUITES[base][name], controller)
    except LateError as late:
        pytest.skip(f"inconclusive: {late}")


def reference(references: dict[tuple[str, str], Flow], base: str, name: str) -> Flow:
    if (base, name) not in references:
        references[base, name] = flow_of(base, base, name)
    return references[base, name]


@pytest.mark.parametrize(("base", "name"), CASES)
def test_the_kernel_responds_as_the_rfcs_say(references, base, name):
    reference(references, base, name)


@pytest.mark.parametrize(("controller", "name"), OURS)
def test_our_controllers_without_an_agent_match_the_base_controller(ours, references, controller, name):
    assert controller in ours
    base = BASES.get(controller, "cubic")
    flow, like = flow_of(controller, base, name), reference(references, base, name)
    found = differences(flow, like, SUITES[base][name].slack)
    assert not found, f"{controller} answers otherwise than {base}:\n" + "\n".join(found)
