"""HyStart of the kernel's Cubic: a parameter of a module, so it holds for the whole machine.

Our BPF programs call the functions of that module, so it holds for them too.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PARAMETER = Path("/sys/module/tcp_cubic/parameters/hystart")


@contextmanager
def switched(*, on: bool) -> Iterator[None]:
    """Switches it on or off for a time. Others that want to do so meanwhile wait.

    Raises:
        OSError: If this machine does not permit that.
    """
    with PARAMETER.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = PARAMETER.read_text()
        PARAMETER.write_text(f"{int(on)}\n")
        try:
            yield
        finally:
            PARAMETER.write_text(before)


@contextmanager
def kept() -> Iterator[None]:
    """Leaves it as it was.

    This holds even where what switched it was killed before it could switch it back.
    """
    if not PARAMETER.exists():
        yield
        return
    with PARAMETER.open() as file:
        # A value that somebody has switched for a time is not the one to keep.
        fcntl.flock(file, fcntl.LOCK_SH)
        before = PARAMETER.read_text()
    try:
        yield
    finally:
        with PARAMETER.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            if PARAMETER.read_text() != before:
                PARAMETER.write_text(before)
