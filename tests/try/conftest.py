"""Fixtures of tests of `headway try`: the requirements of the kernel."""

import pytest

import needs
from headway.path_trial import controllers


@pytest.fixture
def has_cubic():
    """Every Linux has Reno.

    On some Linux systems Cubic is a module, which loads if root requests it.
    """
    if controllers.try_out("cubic"):
        needs.skip("cubic", "needs the kernel's Cubic: sudo modprobe tcp_cubic")
