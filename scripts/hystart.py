"""HyStart of the kernel's Cubic is a parameter of a module, so it holds for the whole machine.

Our BPF programs call the functions of that module, so it holds for them too.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PARAMETER = Path("/sys/module/tcp_cubic/parameters/hystart")


@contextmanager
def switched(*, on: bool) -> Iterator[None]:
    """Switches HyStart on or off for the duration of this context.

    Other users of it wait meanwhile.

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
    """Restores HyStart at the end of this context.

    This works even if the program that changed it was killed before it could restore it.
    """
    if not PARAMETER.exists():
        yield
        return
    with PARAMETER.open() as file:
        # A value that another program has set temporarily must not be saved.
        fcntl.flock(file, fcntl.LOCK_SH)
        before = PARAMETER.read_text()
    try:
        yield
    finally:
        with PARAMETER.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            if PARAMETER.read_text() != before:
                PARAMETER.write_text(before)
