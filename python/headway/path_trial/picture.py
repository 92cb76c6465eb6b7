"""The picture of a trial: throughput against p95 RTT, a point for each scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from headway.path_trial.verdicts import means, whole_rounds
from headway.report.scatter import Across, throughput_against_delay
from headway.report.style import styles
from headway.stats import mean_ellipse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headway.path_trial.folder import Row
    from headway.report.scatter import Placed
    from headway.report.svg import Spec
    from headway.stats.means import Metric

P95_RTT = Across("rtt_p95_ms", "p95 of smoothed RTT", "ms", "p95 RTT", digits=1)


def picture(rows: Sequence[Row], schemes: Sequence[str], to: str) -> Spec:
    """Means of all whole rounds, with 95% ellipses from five rounds on, or else whiskers."""
    rounds = whole_rounds(rows, schemes)
    # No trial knows what its path could have carried.
    unknown: Metric = {"mean": None, "ci95": None}
    more = {"model": None, "utilisation": unknown}
    points = [cast("Placed", {**row, **more}) for row in means(rounds, schemes)]
    regions = {}
    for scheme in schemes:
        rtts = [one[scheme]["rtt_p95_ms"] for one in rounds]
        rates = [one[scheme]["throughput_mbps"] for one in rounds]
        if ellipse := mean_ellipse(rtts, rates):
            regions[scheme] = ellipse
    title = f"Transfers to {to}, {len(rounds)} round{'s' * (len(rounds) != 1)}"
    return throughput_against_delay(points, styles(schemes), regions, title, across=P95_RTT)
