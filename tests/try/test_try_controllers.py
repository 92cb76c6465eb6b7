"""Names of schemes and of the kernel's controllers."""

import errno
import re
import socket

import pytest

from headway._native import UsageError
from headway.path_trial import controllers
from headway.path_trial.controllers import named


def test_schemes_have_the_kernels_names():
    found = named(["cubic", "newreno", "owl", "aurora", "rax", "mine"], lambda _: 0)
    ours = ["headway_owl", "headway_rate", "headway_window"]
    assert list(found.values()) == ["cubic", "reno", *ours, "mine"]


@pytest.mark.parametrize(
    ("schemes", "says"),
    [
        (["cubic"], "give two at least"),
        (["owl", "owl-loss"], "owl and owl-loss are both headway_owl; run a second headwayd"),
        (["reno", "newreno"], "reno and newreno are both reno; leave one of them out"),
        (["cubic", "owl:online=true"], "headwayd run --policy owl:online=true), and name it owl"),
        (["cubic", "a name"], "not a name of a controller"),
        (["cubic", "sixteen-letters-"], "not a name of a controller"),
    ],
)
def test_schemes_that_cannot_be_compared_are_refused(schemes, says):
    with pytest.raises(UsageError, match=re.escape(says)):
        named(schemes, lambda _: 0)


def test_a_line_names_a_missing_controller_and_how_to_load_it(tmp_path, monkeypatch):
    monkeypatch.setattr(controllers, "SYSCTL", tmp_path)
    (tmp_path / "tcp_available_congestion_control").write_text("reno cubic\n")
    (tmp_path / "tcp_allowed_congestion_control").write_text("reno\n")
    errors = {"bbr": errno.ENOENT, "headway_owl": errno.ENOENT, "mine": errno.EPERM}
    with pytest.raises(UsageError) as refused:
        named(["cubic", "bbr", "owl", "mine"], lambda name: errors.get(name, 0))
    assert str(refused.value) == (
        "--schemes: the kernel does not have bbr (load it: sudo modprobe tcp_bbr); "
        "the kernel does not have owl (start it: sudo headwayd run --policy owl); "
        "this user may not choose mine "
        "(allow it: sudo sysctl net.ipv4.tcp_allowed_congestion_control='reno mine'); "
        "this kernel has reno, cubic"
    )


def test_the_kernel_is_asked_which_controllers_it_has():
    assert controllers.try_out("no_such_name") == errno.ENOENT
    assert controllers.try_out("reno") == 0
    with socket.socket() as one:
        controllers.select(one, "reno")
        said = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    assert said.rstrip(b"\0") == b"reno"


def test_a_kernel_that_keeps_ssthresh_between_transfers_gives_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(controllers, "SYSCTL", tmp_path)
    (tmp_path / "tcp_no_metrics_save").write_text("0\n")
    assert len(controllers.doubts()) == 1
    (tmp_path / "tcp_no_ssthresh_metrics_save").write_text("1\n")
    assert controllers.doubts() == []
