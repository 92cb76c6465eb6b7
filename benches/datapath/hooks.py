"""Measures how long BPF programs run, as counted by the kernel.

`bpftool prog show` prints the same counts, with kernel.bpf_stats_enabled. Here a file descriptor
(BPF_ENABLE_STATS) enables counting, so that it ends with this process. Counting reads the clock
twice for each run, which is included: `counting_ns` measures it.
"""

import ctypes
import os
import platform
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

SYSCALL = {"x86_64": 321, "aarch64": 280}
BPF_PROG_LOAD, BPF_PROG_TEST_RUN, BPF_ENABLE_STATS = 5, 10, 32
BPF_PROG_GET_FD_BY_ID, BPF_OBJ_GET_INFO_BY_FD = 13, 15
SOCKET_FILTER = 1
NOTHING = struct.pack("<BBhi", 0xB7, 0, 0, 0) + struct.pack("<BBhi", 0x95, 0, 0, 0)
"""The program `r0 = 0; exit`."""
REPEAT = 1_000_000
INFO_BYTES = 232
"""The size of struct bpf_prog_info in include/uapi/linux/bpf.h. The offsets below are in it."""
NAME_AT, RUN_TIME_AT = 64, 192
NAME_BYTES = 16


class Run(NamedTuple):
    """The number of runs of a program, and their total time."""

    times: int
    ns: int

    def since(self, before: "Run") -> "Run":
        """The runs after `before`."""
        return Run(self.times - before.times, self.ns - before.ns)


@contextmanager
def counted() -> Iterator[None]:
    """Enables the kernel's count of the run time of programs."""
    fd = _bpf(BPF_ENABLE_STATS, struct.pack("I", 0))
    try:
        yield
    finally:
        os.close(fd)


def runs(pid: int) -> dict[str, Run]:
    """The programs whose descriptors a process holds, by name.

    The kernel cuts names to 15 characters.
    """
    found = {}
    for fdinfo in Path(f"/proc/{pid}/fdinfo").iterdir():
        lines = dict(line.split(":", 1) for line in fdinfo.read_text().splitlines() if ":" in line)
        if "prog_id" in lines:
            name, run = _info(int(lines["prog_id"]))
            found[name] = run
    return found


def counting_ns() -> float:
    """The time counted for a program that does nothing. Counting adds it to each run."""
    code, licence = ctypes.create_string_buffer(NOTHING), ctypes.create_string_buffer(b"GPL")
    words = (SOCKET_FILTER, len(NOTHING) // 8, ctypes.addressof(code), ctypes.addressof(licence))
    fd = _bpf(BPF_PROG_LOAD, struct.pack("IIQQ", *words))
    try:
        packet = ctypes.create_string_buffer(64)
        test = struct.pack("IIIIQQI", fd, 0, len(packet), 0, ctypes.addressof(packet), 0, REPEAT)
        with counted():
            _bpf(BPF_PROG_TEST_RUN, test)
        _, run = _info_of(fd)
    finally:
        os.close(fd)
    return run.ns / run.times


def _info(program: int) -> tuple[str, Run]:
    fd = _bpf(BPF_PROG_GET_FD_BY_ID, struct.pack("III", program, 0, 0))
    try:
        return _info_of(fd)
    finally:
        os.close(fd)


def _info_of(fd: int) -> tuple[str, Run]:
    info = ctypes.create_string_buffer(INFO_BYTES)
    _bpf(BPF_OBJ_GET_INFO_BY_FD, struct.pack("IIQ", fd, INFO_BYTES, ctypes.addressof(info)))
    name = info.raw[NAME_AT : NAME_AT + NAME_BYTES].rstrip(b"\0").decode()
    ns, count = struct.unpack_from("QQ", info.raw, RUN_TIME_AT)
    return name, Run(count, ns)


def _bpf(command: int, attributes: bytes) -> int:
    number = SYSCALL.get(platform.machine())
    if number is None:
        raise RuntimeError(f"bpf() has no number here for {platform.machine()}; these have: {', '.join(SYSCALL)}")
    libc = ctypes.CDLL(None, use_errno=True)
    attr = ctypes.create_string_buffer(attributes, 128)
    found: int = libc.syscall(number, command, ctypes.byref(attr), 128)
    if found < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command}): {os.strerror(ctypes.get_errno())}")
    return found
