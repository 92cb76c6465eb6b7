"""A cluster in this process."""

import sys

import pytest

from fake_ray import FakeRay


@pytest.fixture(autouse=True)
def undrawn(monkeypatch):
    """Disables pictures, because no test here looks at one."""
    monkeypatch.setattr("headway.report.svg._drawn", lambda _: b"<svg></svg>")


@pytest.fixture
def ray(monkeypatch):
    """A cluster of two machines, with two cores and with one."""
    fake = FakeRay(2, 1)
    monkeypatch.setitem(sys.modules, "ray", fake)
    return fake
