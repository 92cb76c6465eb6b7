"""Compares an interval of a difference with a margin.

A difference within the margin counts as none.
"""

from enum import Enum, auto


class Side(Enum):
    """The position of the whole interval, or what it leaves open."""

    ABOVE = auto()
    """Above the margin."""
    WITHIN = auto()
    """Within the margin on either side of zero."""
    BELOW = auto()
    """Below the negative margin."""
    NOT_BELOW = auto()
    """It reaches from WITHIN into ABOVE."""
    NOT_ABOVE = auto()
    """It reaches from BELOW into WITHIN."""
    ANY = auto()
    """It reaches from BELOW into ABOVE."""


def side(low: float, high: float, margin: float) -> Side:
    """Returns where the interval from `low` to `high` lies; `margin` is 0 or more."""
    if low > margin:
        return Side.ABOVE
    if high < -margin:
        return Side.BELOW
    if low >= -margin:
        return Side.WITHIN if high <= margin else Side.NOT_BELOW
    return Side.NOT_ABOVE if high <= margin else Side.ANY
