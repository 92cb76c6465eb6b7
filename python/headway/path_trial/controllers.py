"""Which of the kernel's congestion controllers a scheme means, and whether this kernel has it."""

from __future__ import annotations

import errno
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from headway._native import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SYSCTL = Path("/proc/sys/net/ipv4")
NAME = re.compile(r"[A-Za-z0-9_.-]{1,15}")
"""The kernel takes the first 15 characters of a longer name."""
POLICIES = {
    "owl": "headway_owl",
    "owl-loss": "headway_owl",
    "rax": "headway_window",
    "aurora": "headway_rate",
    "bbr-tuner-ppo": "headway_bbr",
    "bbr-tuner-dqn": "headway_bbr",
    "bbr-tuner-a2c": "headway_bbr",
}
"""The controller of headwayd that carries out a policy's answers (docs/kernel.md)."""
OTHER_NAMES = {"newreno": "reno"}
"""Schemes that the kernel calls otherwise."""


def kernel_name(scheme: str) -> str:
    """The kernel's name of a scheme: that of headwayd's controller for a policy, else the same."""
    return POLICIES.get(scheme) or OTHER_NAMES.get(scheme, scheme)


def select(connection: socket.socket, controller: str) -> None:
    """Makes `controller` the connection's congestion controller. Raises OSError."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())


def try_out(controller: str) -> int:
    """The error with which the kernel refuses the controller to this process; 0 if it takes it."""
    with socket.socket() as unconnected:
        try:
            select(unconnected, controller)
        except OSError as error:
            return error.errno or errno.EIO
    return 0


def named(schemes: Sequence[str], refuses: Callable[[str], int] = try_out) -> dict[str, str]:
    """The kernel's name of each scheme.

    Args:
        schemes: At least two names, such as `cubic` or `owl`.
        refuses: Tells with which error the kernel refuses a controller, 0 for none.

    Raises:
        UsageError: Two of them are one controller, or this kernel does not have all of them.
    """
    if len(schemes) < 2:
        raise UsageError(f"--schemes {','.join(schemes)}: give two at least, such as cubic,bbr")
    found: dict[str, str] = {}
    for scheme in schemes:
        if ":" in scheme:
            policy = scheme.partition(":")[0]
            raise UsageError(
                f"--schemes {scheme}: the kernel takes no parameters; "
                f"give them to headwayd (headwayd run --policy {scheme}), and name it {policy} here"
            )
        controller = kernel_name(scheme)
        if not NAME.fullmatch(controller):
            raise UsageError(f"--schemes '{scheme}': not a name of a controller; such as cubic")
        for other, known in found.items():
            if known == controller:
                cure = "leave one of them out"
                if controller in POLICIES.values():
                    cure = "run a second headwayd with --name and --socket, and give its name here"
                raise UsageError(f"--schemes: {other} and {scheme} are both {controller}; {cure}")
        found[scheme] = controller
    refused = {scheme: refuses(controller) for scheme, controller in found.items()}
    missing = [how_to_get(scheme, found[scheme], why) for scheme, why in refused.items() if why]
    if missing:
        has = ", ".join(_words("tcp_available_congestion_control"))
        raise UsageError(f"--schemes: {'; '.join(missing)}; this kernel has {has}")
    return found


def how_to_get(scheme: str, controller: str, why: int) -> str:
    """Says why the kernel refuses a controller, and what makes it available."""
    if why == errno.EPERM:
        allowed = " ".join([*_words("tcp_allowed_congestion_control"), controller])
        cure = f"sudo sysctl net.ipv4.tcp_allowed_congestion_control='{allowed}'"
        return f"this user may not choose {scheme} (allow it: {cure})"
    if scheme in POLICIES:
        cure = f"start it: sudo headwayd run --policy {scheme}"
    elif controller.startswith("headway_"):
        cure = "start it: sudo headwayd run --policy POLICY"
    else:
        cure = f"load it: sudo modprobe tcp_{controller}"
    return f"the kernel does not have {scheme} ({cure})"


def doubts() -> list[str]:
    """What this machine's settings do to a comparison, a line each."""
    saved = ("tcp_no_metrics_save", "tcp_no_ssthresh_metrics_save")
    if any(_words(name) == ["1"] for name in saved):
        return []
    cure = "sudo sysctl net.ipv4.tcp_no_metrics_save=1"
    return [f"the kernel starts a transfer with the ssthresh of the last one; avoid that: {cure}"]


def _words(name: str) -> list[str]:
    """The words of a setting of net.ipv4; none where it cannot be read."""
    try:
        return (SYSCTL / name).read_text().split()
    except OSError:
        return []
