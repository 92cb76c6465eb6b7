"""Tests over real packets that judge rates, delays and durations: see docs/live.md."""

import pytest

# pytest shows the details of assertions in these modules too.
pytest.register_assert_rewrite("packets.scripts", "kernel.judge", "machine", "waiting")

from machine import ahead, bbr, bpf, bpffs, permitted, small_disk, tun_for_all  # noqa: E402

__all__ = ["ahead", "bbr", "bpf", "bpffs", "permitted", "small_disk", "tun_for_all"]
