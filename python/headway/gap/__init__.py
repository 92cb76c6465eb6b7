"""How far the simulator is from real packets.

The same runs are made in worlds 1 and 2, and compared. `headway.gap(...)` makes the
comparison; `help(headway.api.gap)` explains its arguments.

Example:
    >>> gap = headway.gap(["newreno", "copa"], ["pantheon-default"], runs=5, seconds=30)
    >>> print(gap.table())
"""

import sys

from headway import Package

sys.modules[__name__].__class__ = Package
