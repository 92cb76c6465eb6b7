"""Fixtures of tests that make network namespaces: what the machine has to permit."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import daemon
import enclosure
import needs


@pytest.fixture(scope="session", autouse=True)
def permitted() -> None:
    """All tests are skipped, with one line each, where namespaces are not permitted."""
    if why := enclosure.refusal():
        needs.skip("namespaces", why)


@pytest.fixture(scope="module")
def bpf() -> None:
    """For tests whose agent has to be there."""
    if why := daemon.refusal():
        needs.skip("bpf", f"BPF controllers cannot be had: {why}")


@pytest.fixture(scope="module")
def ahead() -> Iterator[None]:
    """Agents run ahead of all else on the machine, where that is permitted. Nothing else does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(daemon.Daemon, "is_ahead", True)
        yield


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """One of its own, in which nobody is."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    folders = [Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"]
    if not folders:
        needs.skip("cgroups", "no cgroups of version 2 are mounted")
    own = folders[0] / f"headway-test-{os.getpid()}"
    try:
        own.mkdir()
    except OSError as error:
        needs.skip("cgroups", f"cgroups cannot be made here: {error.strerror}")
    yield own
    own.rmdir()
