"""`--ray ADDRESS`: how a cluster is found, and the errors if there is none."""

import signal
import sys

import pytest

import headway
from fake_ray import RayError
from headway._native import UsageError
from headway.runs.many_machines import connected

BENCH = ["cubic"], ["rax-1"]


def test_without_ray_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    why = r"^the package 'ray' is missing; install it: pip install '\.\[ray\]' in the folder of Headway's sources$"
    with pytest.raises(headway.Error, match=why):
        headway.bench(*BENCH, out=tmp_path, ray="auto")


def test_a_missing_cluster_gives_a_one_line_error(ray, tmp_path):
    ray.refuses = ConnectionError("Could not find any running Ray instance. Please specify\nthe one")
    why = "^ray auto: Could not find any running Ray instance; give auto on a machine of a cluster .* or local$"
    with pytest.raises(headway.Error, match=why):
        headway.bench(*BENCH, out=tmp_path, ray="auto")


def test_a_refusal_of_a_cluster_names_the_settings_to_compare(ray, tmp_path):
    """Ray gives no details about a missing or a different token."""
    ray.refuses = ConnectionError("Failed to connect to Ray cluster at 10.0.0.1:6379. \nHere is a traceback")
    cure = r"make sure that its head runs, and that RAY_AUTH_MODE and ~/\.ray/auth_token are the same here"
    why = rf"^ray auto: Failed to connect to Ray cluster at 10\.0\.0\.1:6379; {cure}$"
    with pytest.raises(headway.Error, match=why):
        headway.bench(*BENCH, out=tmp_path, ray="auto")


def test_a_cluster_with_another_token_says_which_file_to_copy(ray, tmp_path):
    ray.refuses = RayError("Invalid token. Ensure that\nthe token")
    why = (
        "^ray auto: Invalid token; set RAY_AUTH_MODE=token, and copy the token of the cluster to ~/.ray/auth_token$"
    )
    with pytest.raises(headway.Error, match=why):
        headway.bench(*BENCH, out=tmp_path, ray="auto")


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("127.0.0.1:1", r"\[Errno 111\] Connection refused"),
        ("127.0.0.1:x", "invalid literal for int.*"),
    ],
)
def test_a_head_that_does_not_answer_is_refused_at_once(ray, address, why):
    """Ray itself tries for four minutes."""
    with pytest.raises(UsageError, match=rf"^--ray {address}: {why}; give auto on a machine"), connected(address):
        pass
    assert ray.inits == []


@pytest.mark.usefixtures("ray")
def test_ray_does_not_replace_signal_handlers():
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with connected("auto"):
            assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_existing_ray_connection_is_used_and_stays_open(ray):
    ray.is_up = True
    with connected("auto"):
        pass
    assert (ray.inits, ray.is_up) == ([], True)
