"""The schemes that are compared with Owl, by the paper's five kinds (section VII-A).

It also finds Owl's ablations.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headway._native import schemes
from headway.reproduce.ablation import trainings
from headway.reproduce.claim import PERCENT, Verdict, judge
from headway.reproduce.lab import MissingError
from headway.reproduce.measured import over_recordings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from headway.reproduce.claim import Claim
    from headway.reproduce.lab import Lab, RunRequest
    from headway.reproduce.measured import Measured
    from headway.rows import MetricName

END_TO_END = (
    "cubic",
    "vegas",
    "bbr",
    "copa",
    "pcc-allegro",
    "vivace",
    "verus",
    "sprout",
    "aurora",
    "ledbat",
    "tao-va",
    "indigo",
)
"""End-to-end schemes. PCC is Allegro. Schemes that Headway does not have yet join when it has
them."""
MEDIA = ("scream", "gcc")
"""End-to-end schemes for real-time media; WebRTC is GCC."""
IN_NETWORK = ("abc", "xcp")
LINUX = ("newreno", "cubic", "bbr", "vegas")
"""The schemes here that Linux has too. Linux's other modules are missing here."""

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
OF_LINUX = {
    **{"reno": "newreno", "cubic": "cubic", "bbr": "bbr"},
    **{
        name: f"kernel-{name}"
        for name in (
            *("bic", "cdg", "highspeed", "htcp", "hybla", "illinois", "lp", "nv", "scalable", "vegas", "veno"),
            *("westwood", "yeah"),
        )
    },
}
"""The controllers of Linux's sources, as world `kernel` names them, without DCTCP, which needs
marks. Others that a kernel has are programs that somebody has loaded."""

ABC_RULE = (
    "ABC's routers follow the NSDI 2020 paper, which Owl's paper cites: their target rate is a "
    "share of the link's capacity. The authors' published router (HotNets 2017) takes the share "
    "of the measured output rate instead (`observed = true` of a queue of kind abc)."
)
RULE_ALONE = "owl-rule"
"""The rule that Owl imitates, as a scheme of its own."""
RULE_REACHES = "what would show it: a network that imitates its rule more closely"
"""A note for a claim that our network fails and the rule meets: it says more of the network than of
Owl."""

BASE = "as-it-is"
"""Owl as it ships, trained with the budget of the ablations: the baseline of the others."""
IMITATION = (
    "In training, the network also learns to imitate a rule for the window. The rule ignores the "
    "switches' counters (docs/decisions/0031). The imitation loss keeps a weight of 3 to the end, "
    "and the Q-loss has slopes of at most 1. So the rule's advice decides wherever there is "
    "advice. This figure therefore compares imitations of one rule more than it compares rewards."
)
"""A note of the figures that compare Owl's variants, or its inputs, with one another."""
TRAIN_FIRST = (
    "The variants do not come with Headway. `headway train owl --ablation all --seeds 1-5` trains them first, in "
    "some four hours of CPU time."
)
"""A note of the figures that need these variants."""


def of_this_kernel() -> list[str]:
    """Returns every controller that this kernel has, as world `kernel` names it.

    A module that is not loaded is missing.
    """
    names = AVAILABLE.read_text().split() if AVAILABLE.exists() else []
    return sorted(OF_LINUX[name] for name in names if name in OF_LINUX)


def ablation(lab: Lab, name: str) -> str:
    """Returns the spec of an ablation with all its trainings, with Owl's own latency.

    Raises MissingError.
    """
    return f"learned{''.join(f':model={folder}' for folder in trainings(lab, 'owl', name))}{_latency()}"


def ablations(lab: Lab, named: Mapping[str, str]) -> dict[str, str]:
    """Returns the specs of ablations by their labels.

    Those that are not trained here are left out, and noted.
    """
    found = {}
    for label, name in named.items():
        try:
            found[label] = ablation(lab, name)
        except MissingError as why:
            lab.note(f"{why}; left out")
    return found


def beats_rule(
    figure: str,
    pairs: Mapping[str, tuple[RunRequest, RunRequest]],
    measured: Measured,
    *,
    of_recordings: bool = False,
) -> Claim:
    """Claims that training a network was worth it, compared with the rule that it imitates.

    Args:
        figure: The figure's name, with which the claim's begins.
        pairs: Owl's runs on a network, and those of `RULE_ALONE`, by the network's description.
        measured: The results of the runs.
        of_recordings: Are the networks recordings? Then each is one sample, and their mean is
            judged.
    """
    metrics: dict[str, MetricName] = {"throughput": "throughput_mbps", "power": "power"}
    by_network = {
        said: {where: measured.percent(ours, rule, metric) for where, (ours, rule) in pairs.items()}
        for said, metric in metrics.items()
    }
    averaged = ", averaged over recordings, which are the samples" if of_recordings else ""
    return judge(
        f"{figure}.rule",
        "Ours: Owl beats the hand-written rule that it imitates",
        "difference of Owl's throughput and power from owl-rule's, in % of the latter"
        f"{averaged}; threshold: above 0",
        {said: over_recordings(each.values()) for said, each in by_network.items()}
        if of_recordings
        else {f"{where}, {said}": one for said, each in by_network.items() for where, one in each.items()},
        "%",
        more=PERCENT,
        learners=("owl",),
    )


def with_rule(claims_of: Callable[[str], Sequence[Claim]], ours: str, has_rule: bool) -> list[Claim]:
    """Judges claims about Owl.

    If one fails, the rule that our network imitates shows whether the network is to blame.

    The rule sets the same window, and gets nothing from switches. If the claim holds for the rule,
    then our network is too weak to tell. Else the claim does not hold, also if the rule leaves it
    open. The note says what becomes of the claim with the rule in Owl's place.

    Args:
        claims_of: The claims with a scheme in Owl's place, by its label. Claims about Owl-Loss,
            whose reward differs from the rule's, and about what switches tell are left out.
        ours: Owl's label.
        has_rule: Whether `RULE_ALONE` ran too.
    """
    claims = list(claims_of(ours))
    if not has_rule:
        return claims
    both = zip(claims, claims_of(RULE_ALONE), strict=True)
    return [_noted(claim, rule.verdict) if claim.verdict is Verdict.FAILS else claim for claim, rule in both]


def _noted(claim: Claim, of_rule: Verdict) -> Claim:
    """Returns a claim that fails for our network, with a note on the claim for the rule."""
    said = f"with {RULE_ALONE}, the rule that our network imitates, in Owl's place: {of_rule}"
    return claim.noted(said, RULE_REACHES, verdict=Verdict.WEAK) if of_rule is Verdict.HOLDS else claim.noted(said)


def online(lab: Lab) -> dict[str, str]:
    """Returns an Owl that learns while it runs, to compare with the frozen one.

    See Algorithm 1, lines 11 and 12.
    """
    if "online" in _parameters() and "owl" not in lab.stand_ins:
        return {"owl-online": f"{lab.scheme('owl')}:online=true"}
    lab.note("no scheme here is an Owl that continues to learn; it is left out")
    return {}


def _latency() -> str:
    """Returns the latency of Owl's answers, as a parameter of `learned`."""
    latency = _parameters().get("latency")
    return f":latency={latency}" if latency else ""


def _parameters() -> dict[str, str]:
    """Returns Owl's parameters with their defaults; none if there is no such scheme."""
    found = (scheme["params"] for scheme in schemes() if scheme["name"] == "owl")
    return {parameter["name"]: parameter["default"] for parameter in next(found, [])}
