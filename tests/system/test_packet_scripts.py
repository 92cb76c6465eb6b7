"""What kernel sockets answer, packet by packet: Cubic by its RFCs, and ours without an agent as Cubic does.

docs/packet-scripts.md says what each script sends and expects.
"""

import difflib
import gc
import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from packets.controllers import UnavailableError, without_agent
from packets.flow import Flow
from packets.scripts import BBR, CUBIC, Script

pytestmark = pytest.mark.system

SUITES = {"cubic": CUBIC, "bbr": BBR}
CASES = [(beneath, name) for beneath, suite in SUITES.items() for name in suite]
BENEATH = {"headway_bbr": "bbr"}
"""Which of the kernel's controllers one of ours is without an agent, where that is not Cubic."""
TRIES = 5


@pytest.fixture(scope="module", autouse=True)
def prompt() -> Iterator[None]:
    """Ahead of what else the machine does, where that is permitted, and with no long pause to collect garbage.

    A whole test run holds so much that one takes longer than RTTs may vary before slow start ends.
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


@pytest.fixture(scope="module")
def ours() -> Iterator[list[str]]:
    """Our controllers, with no agent."""
    with ExitStack() as stack:
        try:
            names = stack.enter_context(without_agent())
        except UnavailableError as why:
            pytest.skip(f"our controllers without an agent: {why}")
        yield names


@pytest.fixture(scope="module")
def references() -> dict[str, Flow]:
    """Runs of the kernel's own controllers, by script: a script is played once for them."""
    return {}


def play(script: Script, controller: str) -> Flow:
    """Plays a script; again where the machine was too late to say anything."""
    for left in reversed(range(TRIES)):
        flow = script.flow(controller)
        try:
            with flow:
                script.run(flow)
        except AssertionError as error:
            if flow.late <= script.late_s or not left:
                error.add_note(
                    f"{controller}, at most {flow.late * 1000:.1f} ms late; the last of it:\n{flow.story(last=30)}"
                )
                raise
        else:
            if flow.late <= script.late_s:
                return flow
    raise AssertionError(f"an ACK was over {script.late_s * 1000:.0f} ms late in each of {TRIES} runs")


def reference(references: dict[str, Flow], beneath: str, name: str) -> Flow:
    if name not in references:
        references[name] = play(SUITES[beneath][name], beneath)
    return references[name]


def differences(flow: Flow, other: Flow, slack: int) -> list[str]:
    """In which packet, or by how much more than `slack` packets a flight, one answers otherwise than the other."""
    if not slack:
        stories = (f.story().split("\n") for f in (other, flow))
        return list(difflib.unified_diff(*stories, other.controller, flow.controller, n=2, lineterm=""))
    if len(flow.rounds) != len(other.rounds):
        return [f"{len(flow.rounds)} flights for {len(other.rounds)}"]
    found = []
    for number, (one, two) in enumerate(zip(flow.rounds, other.rounds, strict=True)):
        pairs = zip((*one[:2], *one.info[:2]), (*two[:2], *two.info[:2]), strict=True)
        if any(abs(a - b) > slack for a, b in pairs) or one.info.state != two.info.state:
            found.append(f"flight {number}: {one}, {other.controller}'s {two}")
    return found


@pytest.mark.parametrize(("beneath", "name"), CASES)
def test_the_kernel_answers_as_its_rfcs_say(references, beneath, name):
    reference(references, beneath, name)


@pytest.mark.parametrize(("beneath", "name"), CASES)
def test_ours_without_an_agent_answer_as_what_is_beneath(ours, references, beneath, name):
    script, like = SUITES[beneath][name], reference(references, beneath, name)
    wrong = []
    for controller in ours:
        if BENEATH.get(controller, "cubic") != beneath:
            continue
        try:
            flow = play(script, controller)
        except AssertionError as error:
            wrong.append(f"{controller}: {error}\n" + "\n".join(getattr(error, "__notes__", [])))
            continue
        if found := differences(flow, like, script.slack):
            wrong.append(f"{controller} answers otherwise than {beneath}:\n" + "\n".join(found))
    assert not wrong, "\n".join(wrong)


def test_a_difference_is_found(references):
    """Reno is no Cubic: it halves."""
    script = CUBIC["one_loss"]
    with script.flow("reno") as flow, pytest.raises(AssertionError):
        script.run(flow)
    like = reference(references, "cubic", "one_loss")
    assert differences(flow, like, 0)
    assert differences(flow, like, 2)
    assert not differences(like, play(script, "cubic"), 0)
