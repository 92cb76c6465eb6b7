"""Section VII-E: flows of one second to a hundred. Figure 10."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.reproduce.charts import looks_of, over, titled
from headway.reproduce.claim import MORE, each_within
from headway.reproduce.figure import Drawn, Figure
from headway.reproduce.lab import family

if TYPE_CHECKING:
    from headway.reproduce.figure import Made
    from headway.reproduce.lab import Lab


def fig10(lab: Lab) -> Made:
    """Throughput over the flow's length."""
    specs = {"owl": lab.scheme("owl")} | lab.those(["cubic", "bbr", "aurora", "abc"])
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
        each_within(
            f"fig10.{rival}",
            f"Owl outperforms {rival} for short-lived and for long-lived flows (VII-E)",
            f"throughput, Owl's over {rival}'s, at each length; above 0 wanted",
            {
                f"{s:g} s": measured.percent(points["owl"], points[rival], "throughput_mbps")
                for s, points in lengths.items()
            },
            "%",
            low=MORE,
        )
        for rival in specs
        if rival != "owl"
    ]
    return Drawn(chart, claims)


FIGURES = (
    Figure(
        "fig10",
        "Throughput over the length of the flow",
        "50 Mbit/s, 30 ms of base RTT, 1000 packets of queue: the paper names no network here, and this is that of "
        "the sections around it.",
        fig10,
    ),
)
