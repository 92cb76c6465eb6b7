"""Fixtures of tests that make network namespaces: the required permissions of the machine."""

import os
import socket
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

import daemon
import enclosure
import needs

MOSTLY_UNJUDGED = pytest.StashKey[bool]()
"""A stash key, set if the machine was too busy to judge most packet scripts."""


@pytest.fixture(scope="session", autouse=True)
def permitted() -> None:
    """Skips all tests, with one line each, if namespaces are not permitted."""
    if why := enclosure.refusal():
        needs.skip("namespaces", why)


@pytest.fixture(scope="module")
def bpf() -> None:
    """A requirement of tests that need an agent."""
    if why := daemon.refusal():
        needs.skip("bpf", f"BPF controllers cannot be had: {why}")


@pytest.fixture(scope="session")
def bbr() -> None:
    """A requirement of tests that need the kernel's BBR, of which `headway_bbr` is made."""
    with socket.socket() as one:
        try:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"bbr")
        except OSError:
            needs.skip("bbr", "this kernel has no BBR: sudo modprobe tcp_bbr")


@pytest.fixture(scope="module")
def ahead() -> Iterator[None]:
    """Gives agents real-time priority, where that is permitted. No other process has it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(daemon.Daemon, "is_ahead", True)
        yield


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """An empty registry for these tests."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    folders = [Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"]
    if not folders:
        needs.skip("cgroups", "no cgroups of version 2 are mounted")
    try:
        # Several processes can have the same number, in several namespaces.
        own = Path(tempfile.mkdtemp(prefix="headway-test-", dir=folders[0]))
    except OSError as error:
        needs.skip("cgroups", f"cgroups cannot be made here: {error.strerror}")
    yield own
    own.rmdir()


@pytest.fixture
def tun_for_all(tmp_path: Path) -> Iterator[None]:
    """Lets any user open /dev/net/tun of the tests, whatever this machine permits.

    Only root can make the device, and only the tests' own mount namespace has it.
    """
    with ExitStack() as stack:
        if enclosure.INSIDE in os.environ:
            with suppress(PermissionError, subprocess.CalledProcessError):
                _mount(stack, tmp_path, "-t", "tmpfs", "tmpfs")
                os.mknod(tmp_path / "tun", stat.S_IFCHR, os.makedev(10, 200))
                (tmp_path / "tun").chmod(0o666)
                _mount(stack, Path("/dev/net/tun"), "--bind", str(tmp_path / "tun"))
        yield


@pytest.fixture
def bpffs(tmp_path: Path) -> Iterator[Path]:
    """A separate bpffs for pins. Its contents end with it."""
    place = tmp_path / "bpffs"
    place.mkdir()
    with ExitStack() as stack:
        _mount(stack, place, "-t", "bpf", "-o", "mode=0700", "bpf")
        yield place


@pytest.fixture
def usual_bpffs() -> Iterator[Callable[[str], None]]:
    """Mounts a file system of this type at /sys/fs/bpf, for the tests' own mount namespace."""
    if enclosure.INSIDE not in os.environ:
        needs.skip("namespaces", "this mounts at /sys/fs/bpf; run it with make test-system")
    with ExitStack() as stack:
        yield lambda kind: _mount(stack, Path("/sys/fs/bpf"), "-t", kind, kind)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 16 KiB, which fills quickly."""
    disk = tmp_path / "disk"
    disk.mkdir()
    with ExitStack() as stack:
        _mount(stack, disk, "-t", "tmpfs", "-o", "size=16k", "tmpfs")
        yield disk


def _mount(stack: ExitStack, where: Path, *words: str) -> None:
    subprocess.run(["mount", *words, str(where)], check=True)
    stack.callback(subprocess.run, ["umount", str(where)], check=True)
