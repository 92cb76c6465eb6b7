"""What is compared: controllers as a flow may have them."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from datapath import nets

YARDSTICK = "cubic"
KERNELS = (YARDSTICK, "bbr")
"""Controllers that need no daemon."""
COUNTED_ONLY = ("window-no-agent", "bbr-no-agent")
"""Only their hooks are counted, as the base controller's part of other variants."""
SETTLE_S = 3.0


class Variant(NamedTuple):
    """A controller as a flow may have it."""

    title: str
    options: tuple[str, ...]
    """Its daemon's; none where no daemon is needed."""
    base: str = ""
    """The same program without an agent, where it has one."""
    is_held: bool = False
    """Is it held to the targets? What it decides changes nothing, so that what it costs is the
    datapath's."""
    settle_s: float = 0.0
    """Its flow takes this long to find its rate, before hooks are counted."""
    over: str = YARDSTICK
    """What it is compared with."""


def _unserved(controller: str) -> tuple[str, ...]:
    return ("--no-agent", "--controllers", controller)


def every(models: Path, int8: str | None) -> dict[str, Variant]:
    """All of them; the first is what others are compared with.

    Args:
        models: The folder for models that are made for this.
        int8: A policy in whole numbers.
    """
    still = f"learned:model={nets.window(models / 'still', nets.OWLS_LAYERS)}"
    eager = f"learned:model={nets.rate(models / 'eager-rate')}"
    found = {
        YARDSTICK: Variant("the kernel's Cubic", ()),
        "bbr": Variant("the kernel's BBR", ()),
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
            "headway_rate, a net that wants all the rate", ("--policy", eager), "rate-no-agent", True
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
        title = "headway_rate, Aurora in whole numbers inside BPF"
        found["int8"] = Variant(title, ("--policy", int8), "rate-no-agent", settle_s=SETTLE_S)
    return found


def transferring(found: Mapping[str, Variant]) -> dict[str, Variant]:
    """Those whose throughput and processor time are compared."""
    return {name: variant for name, variant in found.items() if name not in COUNTED_ONLY}


def counted(found: Mapping[str, Variant]) -> dict[str, Variant]:
    """The variants with programs of ours.

    Some have an agent that never sleeps, so that no hook wakes it.
    """
    ours = {name: variant for name, variant in found.items() if variant.options}
    asked = ("owl-shadow", "owl-still", "window-still", "aurora-shadow", "rate-eager")
    for name in asked:
        variant = found[name]
        options = (*variant.options, "--busy-poll")
        ours[f"{name}-awake"] = variant._replace(title=f"{variant.title}, busy poll", options=options)
    return ours
