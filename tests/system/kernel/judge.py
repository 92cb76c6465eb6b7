"""Judges flows whose policy or agent has failed."""

import pytest

from kernel.path import Flow

LINK_MBPS = 20
"""The rate of `path.LINK`."""

AFTER_S = 5.0
"""The seconds over which flows are judged."""
LONGEST_GAP_S = 0.6
"""A flow may send nothing for one timeout (0.2 s and a round trip). A second one in a row is a
fault."""
LEAST_SHARE = 0.1
"""The required part of an equal share. Flows share unevenly over seconds, and a Cubic next to BBRs
has little."""
LEAST = 0.9
"""The required part of plain Cubic's throughput."""
LEAST_UNSEEN = 0.5
"""The required part while a policy is bad: until the guard has detected it and the following
stretch is over."""


def no_flow_stalls(flow: Flow, since: float, flows: int = 1) -> None:
    """Checks that each of the flows continues, and none has almost nothing."""
    until = since + AFTER_S
    each = {one: (flow.mbps(since, until, one), flow.longest_gap(since, until, one)) for one in flow.connections()}
    said = ", ".join(f"{mbps:.2f} Mbit/s with a gap of {gap:.2f} s" for mbps, gap in each.values())
    print(said)
    assert len(each) == flows, said
    assert max(gap for _, gap in each.values()) <= LONGEST_GAP_S, said
    assert min(mbps for mbps, _ in each.values()) >= LEAST_SHARE * flow.mbps(since, until) / flows, said


def cubics(plain: Flow, since: float, until: float) -> float:
    """The throughput of plain Cubic in a stretch, in Mbit/s.

    If it does not fill the link, nothing can be judged.
    """
    mbps = plain.mbps(since, until)
    if mbps <= 0.85 * LINK_MBPS:
        pytest.skip(f"inconclusive: plain Cubic has {mbps:.2f} of {LINK_MBPS} Mbit/s in the same seconds")
    return mbps


def does_as_well(
    flow: Flow, since: float, cubics_mbps: float, least: float = LEAST, until: float | None = None
) -> None:
    """Checks that the flows have plain Cubic's throughput in a stretch.

    The stretch is the usual one, unless another end is given.
    """
    until = since + AFTER_S if until is None else until
    mbps = flow.mbps(since, until)
    print(f"{mbps / cubics_mbps:.3f} of Cubic's {cubics_mbps:.2f} Mbit/s in {until - since:.1f} s")
    assert mbps >= least * cubics_mbps, f"{mbps:.2f} of Cubic's {cubics_mbps:.2f} Mbit/s"


def fills_as_cubic(flow: Flow, since: float, holds: int) -> None:
    """Checks that windows grow until the path, with this many packets, is full.

    They then fall to 0.7 (RFC 9438, 4.6).
    """
    for connection in flow.connections():
        cwnds = [sent.cwnd for sent in flow.sent(connection) if since < sent.at <= since + AFTER_S]
        top = cwnds.index(max(cwnds))
        assert cwnds[top] >= 0.9 * holds, cwnds[::20]
        assert min(cwnds[top:]) <= 0.75 * cwnds[top], cwnds[::20]
