"""Plays scripts, and compares the answers of two controllers."""

import difflib

from packets.flow import Flow
from packets.scripts import Script

TRIES = 5


class LateError(Exception):
    """The machine was too busy to judge the play."""


def play(script: Script, controller: str) -> Flow:
    """Plays a script, and repeats it if the machine was too late.

    Raises:
        AssertionError: If the controller's answers differ from the script's expectations.
        LateError: If each run was late.
    """
    for _ in range(TRIES):
        flow = script.flow(controller)
        try:
            with flow:
                script.run(flow)
        # A different number of packets than a script unpacks is a ValueError.
        except (AssertionError, ValueError) as error:
            if flow.is_late:
                continue
            error.add_note(
                f"{controller}, at most {flow.late * 1000:.1f} ms late; the last of it:\n{flow.story(last=30)}"
            )
            raise
        if not flow.is_late:
            return flow
    raise LateError(f"{controller} was played over {script.late_s * 1000:.0f} ms late in each of {TRIES} runs")


def differences(flow: Flow, other: Flow, slack: int) -> list[str]:
    """The first packet in which the answers differ.

    Or the difference of a flight, if it is more than `slack` packets.
    """
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
