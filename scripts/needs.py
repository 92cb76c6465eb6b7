"""The requirements of tests. Tests are skipped if one is missing; in the gate they fail."""

import os

REQUIRE = "HEADWAY_REQUIRE"
"""The environment variable that lists the requirements that must not be missing, with commas."""


def is_required(name: str) -> bool:
    """Whether its absence is a failure here."""
    return name in os.environ.get(REQUIRE, "").split(",")


def skip(name: str, why: str) -> None:
    """Skips the test because `name` is missing, or fails it if the gate requires `name`.

    Raises:
        pytest.skip.Exception: If the test may be skipped.
        pytest.fail.Exception: If the gate requires it.
    """
    import pytest

    if is_required(name):
        pytest.fail(f"{name} is required here, and missing: {why}")
    pytest.skip(why)
