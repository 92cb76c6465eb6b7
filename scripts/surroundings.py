"""Sets the conditions that tests expect, regardless of the process that starts them."""

import os
import signal

DEFAULT = (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD)
LANGUAGE = "C.UTF-8"
FIXED_SEED = {"PROPTEST_RNG_SEED": "1", "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1"}
"""Property tests draw the same inputs each time. `make fuzz` draws new ones."""
RANDOM = "HEADWAY_RANDOM_TESTS"
"""If this variable is set, property tests draw new inputs in each run."""
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""Several tests run at a time. NumPy's threads wait for each other in loops, which takes CPU
time."""
COLOURS = ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "CLICOLOR_FORCE", "COLUMNS")
CHOICES = (
    "LANGUAGE",
    # `make -j2` gives cargo a jobserver that the scripts in between have closed.
    "MAKEFLAGS",
    "MFLAGS",
    "PYTEST_ADDOPTS",
    "PYTHONOPTIMIZE",
    "RUST_TEST_NOCAPTURE",
    "RUST_TEST_SHUFFLE",
    "RUST_TEST_THREADS",
)
"""Variables that choose which tests run, or how, or the language of other programs."""
OWN = {
    "HEADWAY_ENCLOSED",
    "HEADWAY_FLAKY",
    "HEADWAY_LIVE_PIPE",
    "HEADWAY_REQUIRE",
    "HEADWAY_SYSTEM_GROUP",
    "HEADWAY_TRACES",
    RANDOM,
}
"""Variables for communication between tests and their programs, and for the recorded traces.

Other variables of this kind are defaults of commands, such as HEADWAY_SECONDS.
"""
SETTINGS = ("HEADWAY_", "PROPTEST_")
"""Prefixes of the defaults of commands and of property tests. PROPTEST_CASES=1 would weaken
these."""
LONGEST_TMPDIR = 30
NO_PROXY = ("no_proxy", "NO_PROXY")
LOOPBACK = "localhost,127.0.0.1,::1"
"""Tests have local servers. A proxy would look for them on its own machine."""


def prepare() -> None:
    """Sets this process's signals and environment, which its children inherit.

    A script's `&` and `nohup` start processes with SIGHUP, SIGINT and SIGQUIT ignored. Processes
    inherit that through exec, and then no test can interrupt them. If SIGCHLD is ignored, the
    kernel keeps no exit code of a child: `subprocess` takes each for 0.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in DEFAULT:
        signal.signal(number, signal.SIG_DFL)
    os.umask(0o022)
    os.environ["LC_ALL"] = LANGUAGE
    settings = {name for name in os.environ if name.startswith(SETTINGS)} - OWN - FIXED_SEED.keys()
    for name in {*COLOURS, *CHOICES, *settings}:
        os.environ.pop(name, None)
    for name in NO_PROXY:
        given = os.environ.get(name, "")
        if given != "*" and not given.endswith(LOOPBACK):
            os.environ[name] = f"{given},{LOOPBACK}".strip(",")
    # The path of a Unix socket has room for 108 characters, and the sockets of tests are three
    # folders deep.
    if len(os.environ.get("TMPDIR", "")) > LONGEST_TMPDIR:
        os.environ["TMPDIR"] = "/tmp"
    os.environ.update(ONE_THREAD)
    # `headway` starts hundreds of times. Without bytecode it would compile its modules each time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if RANDOM not in os.environ:
        os.environ.update(FIXED_SEED)
