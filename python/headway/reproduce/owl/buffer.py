"""Section VII-C: one flow over buffers of growing size. Figure 7."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from headway.reproduce.charts import looks_of, over, titled
from headway.reproduce.claim import PERCENT, judge
from headway.reproduce.figure import Figure, FigureResult
from headway.reproduce.lab import family
from headway.reproduce.owl.contenders import RULE_ALONE, beats_rule, with_rule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headway.reproduce.claim import Claim
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.lab import Lab, RunRequest
    from headway.reproduce.measured import Measured, Of
    from headway.runs.store import Run
    from headway.stats.estimate import Estimate

BASE_RTT_MS = 30.0
ENOUGH_MBPS = 45.0
"""90% of the link's 50 Mbit/s."""
LARGE_KB = 150.0
"""RTT inflation is judged in larger buffers than this."""


def inflation(run: Run) -> float | None:
    """Returns Eq. 11: mean RTT minus base RTT, in ms."""
    return None if run["rtt_mean_ms"] is None else run["rtt_mean_ms"] - BASE_RTT_MS


def fig7(lab: Lab) -> FigureJob:
    """Draws throughput, RTT inflation and power over the buffer."""
    specs = {"owl": lab.scheme("owl")} | lab.available_schemes([RULE_ALONE, "cubic", "vivace", "copa"])
    buffers = {size: lab.each(specs, scenario) for size, scenario in family("owl-buffer").items()}
    measured = yield [one for points in buffers.values() for one in points.values()]

    def lines(of: Of) -> dict[str, dict[float, Estimate]]:
        return {
            label: {size: measured.mean(points[label], of) for size, points in buffers.items()} for label in specs
        }

    x, looks = "buffer (kB)", looks_of(list(specs))
    chart = titled(
        [
            ("(a) throughput", over(lines("throughput_mbps"), looks, x, "throughput (Mbit/s)", log=True)),
            ("(b) RTT inflation", over(lines(inflation), looks, x, "mean RTT - 30 ms (ms)", log=True)),
            ("(c) power", over(lines("power"), looks, x, "throughput over mean delay (Mbit/s / s)", log=True)),
        ],
        looks,
    )
    claims = with_rule(partial(_claims, buffers, measured), "owl", RULE_ALONE in specs)
    if RULE_ALONE in specs:
        pairs = {f"{size:g} kB": (points["owl"], points[RULE_ALONE]) for size, points in buffers.items()}
        claims.append(beats_rule("fig7", pairs, measured))
    return FigureResult(chart, claims)


def _claims(buffers: Mapping[float, Mapping[str, RunRequest]], measured: Measured, ours: str) -> list[Claim]:
    """Claims of section VII-C, with another scheme in Owl's place if asked for."""
    largest = buffers[max(buffers)]
    return [
        judge(
            "fig7.enough",
            "Owl needs almost the same buffer as PCC-Vivace for 90% of 50 Mbit/s (VII-C)",
            "buffer at which throughput passes 45 Mbit/s (interpolated between sizes on a log "
            "scale): Owl's divided by Vivace's, paired by seed; threshold: at most 1.5",
            needed(buffers, measured, ours),
            high=1.5,
            of="buffer needed",
        ),
        judge(
            "fig7.final",
            "Owl converges to a higher throughput than PCC-Vivace (VII-C)",
            "difference of Owl's throughput from Vivace's in the largest buffer, in % of "
            "Vivace's; threshold: above 0",
            measured.percent(largest[ours], largest["vivace"], "throughput_mbps"),
            "%",
            more=PERCENT,
            of="throughput",
        ),
        judge(
            "fig7.inflation",
            "Owl keeps the RTT's inflation at a quarter of Cubic's when the buffer is above 150 kB (VII-C)",
            "difference of Owl's mean RTT inflation from Cubic's, in % of Cubic's, in each buffer "
            "above 150 kB; threshold: at most -75%",
            {
                f"{size:g} kB": measured.percent(points[ours], points["cubic"], inflation)
                for size, points in buffers.items()
                if size > LARGE_KB
            },
            "%",
            high=-75,
            of="RTT inflation",
        ),
        judge(
            "fig7.power",
            "Owl's power is above PCC-Vivace's (Fig. 7c)",
            "difference of Owl's power from Vivace's, in % of Vivace's, in each buffer; threshold: above 0",
            {
                f"{size:g} kB": measured.percent(points[ours], points["vivace"], "power")
                for size, points in buffers.items()
            },
            "%",
            more=PERCENT,
            of="power",
        ),
    ]


def needed(buffers: Mapping[float, Mapping[str, RunRequest]], measured: Measured, ours: str = "owl") -> Estimate:
    """Returns how much more buffer Owl needs than Vivace.

    A scheme that never has enough counts as if it needed twice the largest.
    """
    sizes = list(buffers)
    never = 2 * sizes[-1]
    wanted = [buffers[size][label] for label in (ours, "vivace") for size in sizes]

    def ratio(*runs: Run) -> float | None:
        rates = [run["throughput_mbps"] or 0.0 for run in runs]
        own, theirs = (passes(sizes, rates[k : k + len(sizes)], ENOUGH_MBPS) for k in (0, len(sizes)))
        return (own or never) / (theirs or never) if own or theirs else None

    return measured.across(wanted, ratio)


def passes(sizes: Sequence[float], rates: Sequence[float], enough: float) -> float | None:
    """Returns the smallest size with `enough`; None if no size has it.

    It is interpolated over the logarithm of the size.
    """
    for k, rate in enumerate(rates):
        if rate >= enough:
            if k == 0:
                return sizes[0]
            share = (enough - rates[k - 1]) / (rate - rates[k - 1])
            return math.exp(math.log(sizes[k - 1]) + share * math.log(sizes[k] / sizes[k - 1]))
    return None


FIGURES = (
    Figure(
        "fig7",
        "Throughput (a), RTT inflation (b) and power (c) over the bottleneck's buffer",
        "One flow sends for 100 s over 50 Mbit/s with a base RTT of 30 ms. Buffers have 3 to 2000 packets.",
        fig7,
    ),
)
