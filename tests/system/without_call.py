"""Runs a program with a filter that refuses some system calls with EPERM, as in containers.

without_call.py NUMBER[,NUMBER...] PROGRAM [ARGUMENT...]: seccomp(2), a filter of classic BPF.
"""

import ctypes
import errno
import os
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
SECCOMP_MODE_FILTER = 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
"""Instructions BPF_LD | BPF_W | BPF_ABS, BPF_JMP | BPF_JEQ | BPF_K, BPF_RET | BPF_K."""
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
"""SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO."""
INSTRUCTION = struct.Struct("=HBBI")
"""struct sock_filter: code, jump if true and if false, and a number."""


class Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def refuse(numbers: list[int]) -> None:
    """Sets the filter for this process and its children from now on."""
    # A call's number is the first field of struct seccomp_data.
    rows = [(LOAD_WORD, 0, 0, 0)]
    for number in numbers:
        rows += [(JUMP_IF_EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE)]
    rows.append((RETURN, 0, 0, ALLOW))
    whole = b"".join(INSTRUCTION.pack(*row) for row in rows)
    program = Program(len(rows), whole)
    libc = ctypes.CDLL(None, use_errno=True)
    for call in (
        (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0),
    ):
        if libc.prctl(*call):
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    refuse([int(number) for number in sys.argv[1].split(",")])
    os.execvp(sys.argv[2], sys.argv[2:])
