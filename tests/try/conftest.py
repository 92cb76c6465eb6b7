"""Fixtures of tests of `headway try`: what the kernel has to have."""

import pytest

import needs
from headway.path_trial import controllers


@pytest.fixture
def has_cubic():
    """Every Linux has Reno. Cubic is a module of some, which loads where root asks for it."""
    if controllers.try_out("cubic"):
        needs.skip("cubic", "needs the kernel's Cubic: sudo modprobe tcp_cubic")
