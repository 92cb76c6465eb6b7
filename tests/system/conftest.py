"""System tests make network namespaces: all of them are skipped, with one line, where that is not permitted."""

import pytest

import daemon
import enclosure

# Its assertions are those of tests, and say what they have found.
pytest.register_assert_rewrite("packets.scripts", "kernel.judge")


@pytest.fixture(scope="session", autouse=True)
def permitted() -> None:
    if why := enclosure.refusal():
        pytest.skip(why)


@pytest.fixture(scope="module")
def bpf() -> None:
    """For tests whose agent has to be there."""
    if why := daemon.refusal():
        pytest.skip(f"BPF controllers cannot be had: {why}")
