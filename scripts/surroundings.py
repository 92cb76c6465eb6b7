"""What tests take for granted of the process that starts them, made so whatever started it."""

import os
import signal

DEFAULT = (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM)
LANGUAGE = "C.UTF-8"
FIXED_SEED = {"PROPTEST_RNG_SEED": "1", "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1"}
"""Property tests draw the same inputs each time. `make fuzz` draws new ones."""
RANDOM = "HEADWAY_RANDOM_TESTS"
"""Where this is set in the environment, property tests draw new inputs in each run."""
COLOURS = ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "CLICOLOR_FORCE", "COLUMNS")
CHOICES = ("PYTEST_ADDOPTS", "RUST_TEST_NOCAPTURE", "RUST_TEST_SHUFFLE", "RUST_TEST_THREADS")
"""They choose which tests run, or how."""


def prepare() -> None:
    """Sets this process's signals and environment, which its children inherit.

    A script's `&` and `nohup` start processes with SIGHUP, SIGINT and SIGQUIT ignored. Processes
    inherit that through exec, and then no test can interrupt them.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in DEFAULT:
        signal.signal(number, signal.SIG_DFL)
    os.environ["LC_ALL"] = LANGUAGE
    for name in COLOURS + CHOICES:
        os.environ.pop(name, None)
    # `headway` starts some hundred times. Without bytecode it would compile its modules each time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if RANDOM not in os.environ:
        os.environ.update(FIXED_SEED)
