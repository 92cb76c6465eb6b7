"""System tests make network namespaces: all of them are skipped, with one line, where that is not permitted."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import daemon
import enclosure

# Its assertions are those of tests, and say what they have found.
pytest.register_assert_rewrite("packets.scripts", "kernel.judge")


@pytest.fixture(scope="session", autouse=True)
def permitted() -> None:
    if why := enclosure.refusal():
        pytest.skip(why)


@pytest.fixture(scope="module")
def bpf() -> None:
    """For tests whose agent has to be there."""
    if why := daemon.refusal():
        pytest.skip(f"BPF controllers cannot be had: {why}")


@pytest.fixture(scope="module")
def ahead() -> Iterator[None]:
    """What is started runs ahead of what else the machine does, where that is permitted: no agent is late."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    yield
    os.sched_setscheduler(0, *before)


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """One of its own, in which nobody is."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    folders = [Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"]
    if not folders:
        pytest.skip("no cgroups of version 2 are mounted")
    own = folders[0] / f"headway-test-{os.getpid()}"
    try:
        own.mkdir()
    except OSError as error:
        pytest.skip(f"cgroups cannot be made here: {error.strerror}")
    yield own
    own.rmdir()
