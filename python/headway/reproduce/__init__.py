"""Makes a paper's figures again and judges its claims by them.

There is one module per paper, and one function per figure. `headway.reproduce(...)` does it;
`help(headway.api.reproduce)` explains its arguments.

Example:
    >>> made = headway.reproduce("rax", "fig8", quick=True)
    >>> print(made.claims())
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from headway import Package

if TYPE_CHECKING:
    from headway.reproduce.figure import Paper

PAPERS = {name: f"headway.reproduce.{name.replace('-', '_')}" for name in ("bbr-tuning", "interval", "owl", "rax")}
"""Papers by their names on the command line. A paper's module has the Paper as PAPER."""


def paper(name: str) -> Paper:
    """Returns a paper of PAPERS."""
    found: Paper = import_module(PAPERS[name]).PAPER
    return found


sys.modules[__name__].__class__ = Package
