"""Whose the window is while losses are repaired: the policy's, the guard's, or the kernel's."""

import pytest

import daemon
from kernel.models import always, beyond, write_model
from packets.flow import INFINITE, OPEN, Flow
from test_good_citizen import GROW, SLOWLY, begin_now, in_time

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("bpf", "ahead")]

WINDOW = 100
"""In packets, of flows that use a third of it: a path is seen to carry no more than they send."""
ANSWERED_S = 0.01
"""An agent answers sooner."""


def wrong_loss(flow):
    """One of forty packets comes late, as the others have told that it is lost.

    ssthresh before it comes, and the state after that.
    """
    for _ in range(2):
        flow.write(12)
        flow.ack(flow.flight(), spacing=ANSWERED_S)
    flow.write(40)
    late, *others = flow.flight()
    begin_now(flow)
    flow.ack(others, spacing=ANSWERED_S)
    reduced = flow.info().ssthresh
    # It is the original, by its timestamp (RFC 3522).
    flow.receive([late])
    flow.send_ack()
    return reduced, flow.info()


def test_an_undo_gives_cubic_nothing_of_what_the_guard_took(tmp_path):
    """The policy asks 32 times for too much, the last times while a loss is repaired.

    The loss was none, so the kernel undoes its own reduction, as Cubic shows.
    """
    with Flow("cubic", initial_cwnd=WINDOW, **SLOWLY) as flow:
        reduced, after = wrong_loss(flow)
    assert reduced == WINDOW * 7 // 10
    assert after.cwnd >= WINDOW
    assert after.ssthresh >= INFINITE
    folder = tmp_path / "model"
    folder.mkdir()
    write_model(folder, *always(GROW), beyond())
    options = ("--policy", f"learned:model={folder}", "--controllers", "headway_window", "--loopback")
    with daemon.Daemon(*options) as agent:
        taken, after = in_time(
            agent,
            "headway_window",
            wrong_loss,
            lambda told: (told["guard_trips"], told["guard_reason"]) == (1, "bounds"),
            initial_cwnd=WINDOW,
        )
    assert taken < WINDOW * 7 // 10
    assert after.state == OPEN
    assert after.ssthresh == taken
    # Of the acknowledgement slow start made a packet.
    assert after.cwnd <= taken + 1
