"""Tests over real packets that judge no time."""

import pytest

# Their assertions are those of tests, and say what they have found.
pytest.register_assert_rewrite("packets.scripts", "kernel.judge", "machine", "waiting")

from machine import bpf, cgroup, permitted, tun_for_all  # noqa: E402

__all__ = ["bpf", "cgroup", "permitted", "tun_for_all"]
