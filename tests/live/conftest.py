"""Tests over real packets that judge rates, delays and durations: see docs/live.md."""

import pytest

# Their assertions are those of tests, and say what they have found.
pytest.register_assert_rewrite("packets.scripts", "kernel.judge", "machine", "waiting")

from machine import ahead, bpf, bpffs, permitted, small_disk, tun_for_all  # noqa: E402

__all__ = ["ahead", "bpf", "bpffs", "permitted", "small_disk", "tun_for_all"]
