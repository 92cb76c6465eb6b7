"""The controllers that are compared."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from datapath import nets

YARDSTICK = "cubic"
COUNTED_ONLY = ("window-no-agent", "bbr-no-agent")
"""Variants of which only the hooks are measured, as the base controller's part of other
variants."""
SETTLE_S = 3.0


class Variant(NamedTuple):
    """A controller that a flow can have."""

    title: str
    options: tuple[str, ...]
    """The options of its headwayd; empty if it needs none."""
    base: str = ""
    """The name of the same program without an agent, if there is one."""
    is_held: bool = False
    """Whether the targets apply. They do if the policy's decisions change nothing, so that the cost
    is the datapath's."""
    settle_s: float = 0.0
    """The seconds that its flow needs to find its rate, before hooks are counted."""
    over: str = YARDSTICK
    """The name of the variant that it is compared with."""
    kernel: str = ""
    """The kernel's controller, of a variant without a headwayd."""
    client: tuple[str, ...] = ()
    """Further options of its flow's iperf3."""


def _unserved(controller: str) -> tuple[str, ...]:
    return ("--no-agent", "--controllers", controller)


def every(models: Path, int8: str | None) -> dict[str, Variant]:
    """Returns all variants. The first is the one that others are compared with.

    Args:
        models: The folder for models that are written for this measurement.
        int8: An integer policy.
    """
    still = f"learned:model={nets.window(models / 'still', nets.OWLS_LAYERS)}"
    eager = f"learned:model={nets.rate(models / 'eager-rate')}"
    found = {
        YARDSTICK: Variant("the kernel's Cubic", (), kernel="cubic"),
        "cubic-small": Variant(
            "the kernel's Cubic, with socket buffers of 150 kB", (), kernel="cubic", client=("-w", "150K")
        ),
        "bbr": Variant("the kernel's BBR", (), kernel="bbr"),
        "owl-no-agent": Variant("headway_owl, no agent", _unserved("headway_owl")),
        "owl-shadow": Variant(
            "headway_owl, Owl asked in shadow", ("--policy", "owl", "--shadow"), "owl-no-agent", True
        ),
        "owl-still": Variant("headway_owl, a net that holds the window", ("--policy", still), "owl-no-agent", True),
        "owl": Variant("headway_owl, Owl decides", ("--policy", "owl"), "owl-no-agent"),
        "window-no-agent": Variant("headway_window, no agent", _unserved("headway_window")),
        "window-still": Variant(
            "headway_window, a net that holds the window",
            ("--policy", still, "--controllers", "headway_window"),
            "window-no-agent",
            True,
        ),
        "rate-no-agent": Variant("headway_rate, no agent", _unserved("headway_rate")),
        "aurora-shadow": Variant(
            "headway_rate, Aurora asked in shadow", ("--policy", "aurora", "--shadow"), "rate-no-agent", True
        ),
        "rate-eager": Variant(
            "headway_rate, a net that asks for the maximum rate", ("--policy", eager), "rate-no-agent", True
        ),
        "aurora": Variant(
            "headway_rate, Aurora decides", ("--policy", "aurora"), "rate-no-agent", settle_s=SETTLE_S
        ),
        "bbr-no-agent": Variant("headway_bbr, no agent", _unserved("headway_bbr")),
        "bbr-set": Variant(
            "headway_bbr, windows as BBR has them",
            ("--controllers", "headway_bbr"),
            "bbr-no-agent",
            True,
            over="bbr",
        ),
    }
    if int8:
        title = "headway_rate, integer Aurora inside BPF"
        found["int8"] = Variant(title, ("--policy", int8), "rate-no-agent", settle_s=SETTLE_S)
    return found


def transferring(found: Mapping[str, Variant]) -> dict[str, Variant]:
    """The variants whose throughput and processor time are compared."""
    return {name: variant for name, variant in found.items() if name not in COUNTED_ONLY}


def counted(found: Mapping[str, Variant]) -> dict[str, Variant]:
    """The variants with our programs.

    For some the agent never sleeps, so that no hook wakes it.
    """
    ours = {name: variant for name, variant in found.items() if variant.options}
    asked = ("owl-shadow", "owl-still", "window-still", "aurora-shadow", "rate-eager")
    for name in asked:
        variant = found[name]
        options = (*variant.options, "--busy-poll")
        ours[f"{name}-awake"] = variant._replace(title=f"{variant.title}, busy poll", options=options)
    return ours
