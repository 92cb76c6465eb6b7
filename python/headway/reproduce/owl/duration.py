"""Section VII-E: flows of one second to a hundred. Figure 10."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.reproduce.charts import looks_of, over, titled
from headway.reproduce.claim import PERCENT, judge
from headway.reproduce.figure import Figure, FigureResult
from headway.reproduce.lab import family
from headway.reproduce.owl.contenders import ABC_RULE, RULE_ALONE, beats_rule

if TYPE_CHECKING:
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.lab import Lab


RIVALS = ("cubic", "bbr", "aurora", "abc")
NETWORK = (
    "the paper names no network here; on ours, one Cubic flow fills the link after slow start, "
    "and Owl uses the same slow start, so that no scheme could have more"
)


def fig10(lab: Lab) -> FigureJob:
    """Draws throughput over the flow's length."""
    specs = {"owl": lab.scheme("owl")} | lab.available_schemes([RULE_ALONE, *RIVALS])
    members = family("owl-duration")
    lengths = {seconds: lab.each(specs, members[seconds]) for seconds in lab.lengths(list(members))}
    measured = yield [one for points in lengths.values() for one in points.values()]

    lines = {
        label: {s: measured.mean(points[label], "throughput_mbps") for s, points in lengths.items()}
        for label in specs
    }
    looks = looks_of(list(specs))
    chart = titled([("", over(lines, looks, "length of the flow (s)", "throughput (Mbit/s)", log=True))], looks)
    claims = [
        judge(
            "fig10.outperforms",
            "Owl outperforms Cubic, BBR, Aurora and ABC for short-lived and for long-lived flows (VII-E)",
            "difference of Owl's throughput from the other scheme's, in % of the latter, at each "
            "length; threshold: above 0",
            {
                f"{rival}, {s:g} s": measured.percent(points["owl"], points[rival], "throughput_mbps")
                for rival in RIVALS
                if rival in specs
                for s, points in lengths.items()
            },
            "%",
            more=PERCENT,
            untestable=NETWORK,
            of="throughput",
        )
    ]
    if RULE_ALONE in specs:
        pairs = {f"{s:g} s": (points["owl"], points[RULE_ALONE]) for s, points in lengths.items()}
        claims.append(beats_rule("fig10", pairs, measured))
    return FigureResult(chart, claims, notes=[ABC_RULE])


FIGURES = (
    Figure(
        "fig10",
        "Throughput over the length of the flow",
        "50 Mbit/s, a base RTT of 30 ms and a queue of 1000 packets. The paper names no network "
        "here; this is the network of the neighbouring sections.",
        fig10,
    ),
)
