"""Reads when an agent answered a flow, from the map that both share."""

import ctypes
import mmap
import os
import platform
import struct
from pathlib import Path
from types import TracebackType
from typing import Self

ACTION = struct.Struct("=8Q2H3I")
"""The format of struct headway_action in crates/kernel/bpf/abi.h."""
BPF_OBJ_GET = 7
BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]
"""The number of the system call bpf(2)."""


class ObjectGet(ctypes.Structure):
    """Formats of union bpf_attr (linux/bpf.h)."""

    _fields_ = (("pathname", ctypes.c_uint64), ("bpf_fd", ctypes.c_uint32), ("file_flags", ctypes.c_uint32))


class Slots:
    """The slots of an agent with these pins, and at most this many flows."""

    def __init__(self, pins: Path, flows: int) -> None:
        (pin,) = pins.rglob("actions")
        name = ctypes.create_string_buffer(bytes(pin))
        attr = ObjectGet(pathname=ctypes.addressof(name))
        libc = ctypes.CDLL(None, use_errno=True)
        fd = libc.syscall(BPF, BPF_OBJ_GET, ctypes.byref(attr), ctypes.sizeof(attr))
        if fd < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(pin))
        try:
            self.memory = mmap.mmap(fd, ACTION.size * flows, prot=mmap.PROT_READ)
        finally:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.memory.close()

    def answer(self, flow: int) -> tuple[int, int] | None:
        """Two times of the newest answer, in ns.

        They are the arrival of the acknowledgement that it answers, and the time of the answer.
        """
        for decided_ns, answered_ns, *_, sequence, number in ACTION.iter_unpack(self.memory[:]):
            # With an odd sequence the answer is being written.
            if number == flow and sequence % 2 == 0:
                return decided_ns, answered_ns
        return None
