"""Section 4.3: flows that begin with what earlier flows learned. Figure 7."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headway.reproduce.charts import titled
from headway.reproduce.claim import POINTS, Aim, judge, text_of
from headway.reproduce.figure import Figure, FigureResult
from headway.reproduce.lab import with_trainings
from headway.reproduce.rax.link import (
    ENOUGH_MBPS,
    FAIR_SHARE,
    LINK_MBPS,
    PATH,
    UNSEEN,
    last_half,
    restart_runs,
    runs_of,
    sampled_flow,
    senders,
    share_lost,
    split_restart_runs,
)
from headway.reproduce.rax.panels import of_one_sender

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headway.reproduce.claim import Claim
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.lab import Lab, RunRequest
    from headway.reproduce.measured import Measured
    from headway.runs.store import Run
    from headway.stats.estimate import Estimate

EARLY_S = 10
"""The beginning of a flow in s, where losses peak."""
MOST_EARLY = 1.0
"""The largest acceptable loss over this beginning, in %."""
SPIKE = 10.0
"""A second with a higher loss than this, in %, is a spike."""


def fig7(lab: Lab) -> FigureJob:
    """Draws one sender alone and one of two senders that continue.

    They continue from their own networks, and from a shipped one.
    """
    restarts = {n: restart_runs(lab, 4, f"rax-{n}") for n in (1, 2)}
    spec = "rax-pretrained" if lab.stand_ins else with_trainings("rax-pretrained")
    shipped = {n: runs_of(lab, f"rax-pretrained, {n}", spec, f"rax-{n}") for n in (1, 2)}
    measured = split_restart_runs(
        (yield [*(of.whole for of in restarts.values()), *shipped.values()]), list(restarts.values())
    )
    first, again = ({n: getattr(of, part) for n, of in restarts.items()} for part in ("first", "again"))
    chart = titled(
        [
            *of_one_sender(measured, {again[1]: "(a) resumed, one sender"}),
            *of_one_sender(measured, {again[2]: "(b) resumed, one of two"}),
            *of_one_sender(measured, {shipped[1]: "(c) rax-pretrained, one sender"}),
        ],
        None,
        2,
    )
    table = [["flows", "senders", "lost in the first 10 s", "95% interval", "largest", "worst second", "spikes"]]
    for label, of_count in {"from nothing": first, "resumed": again, "rax-pretrained": shipped}.items():
        for n, one in of_count.items():
            table.append([label, str(n), *_early(measured, one)])
    own = {f"resumed, {_count(n)}": one for n, one in again.items()}
    of_shipped = {f"rax-pretrained, {_count(n)}": one for n, one in shipped.items()}
    claims = [
        *_quiet_start(
            "fig7",
            "Pre-training can avoid the spike of packet loss in the beginning (4.3)",
            {case: measured.share(one, _has_no_spike) for case, one in own.items()},
            {case: measured.median(one, lost_early) for case, one in own.items()},
            "median of the runs",
            of_learner=False,
        ),
        *_quiet_start(
            "fig7.shipped",
            "Ours: a learner that was trained once for all flows avoids it too",
            {
                case: replace(measured.mean(one, lambda run: float(_has_no_spike(run))), possible=(0.0, 1.0))
                for case, one in of_shipped.items()
            },
            {
                case: replace(measured.mean(one, lost_early), possible=(0.0, 100.0))
                for case, one in of_shipped.items()
            },
            "mean of the trainings, which are the samples",
        ),
        judge(
            "fig7.resumes",
            "Flows simply resume where they ended training before (4.3)",
            "throughput of all senders from 10 to 60 s after the new start, median; threshold: at least 19 Mbit/s",
            {f"{_count(n)}": measured.median(again[n], early_rate) for n in again},
            "Mbit/s",
            low=ENOUGH_MBPS,
            of="throughput",
            of_learner=False,
        ),
        judge(
            "fig7.faster",
            "Pre-training greatly speeds up the initial training (4.3)",
            "share lost in the first minute: resumed flows minus the same flows untrained; threshold: below 0",
            {f"{_count(n)}": measured.difference(again[n], first[n], lost_in_a_minute) for n in again},
            "points",
            less=POINTS,
            of="loss",
            of_learner=False,
        ),
        judge(
            "fig7.variance",
            "With two senders the variance is large against flows that were not pre-trained (4.3)",
            "distance of one of two senders from its half of the link, averaged over the run: "
            "resumed flows minus the same flows untrained; threshold: above 0",
            {"two senders": measured.difference(again[2], first[2], off_its_share)},
            "points",
            more=FAIR_SHARE,
            of="distance from a fair share",
            of_learner=False,
        ),
    ]
    notes = [
        UNSEEN,
        "Resumed: runs of 1200 s. In the middle, a new flow replaces each flow. It begins at a "
        "window of 1 with the networks and optimisers that the old flow saved as text. Packets "
        "that are then still in flight belong to neither flow, but their losses count.",
        "A spike is one of the first ten seconds in which more than 10% of the packets sent are "
        "lost. The table has the worst second of any run, and the number of runs with a spike.",
        f"`rax-pretrained` begins with one of {len(shipped[1].models)} trainings, which take turns. Flows "
        "trained each of them one after another, in 53 minutes on eight links, one of which is "
        "this link. The first is `models/rax-v3`, which Headway ships. No training was chosen.",
    ]
    return FigureResult(chart, claims, table, notes)


def _quiet_start(
    name: str,
    says: str,
    without_spike: Mapping[str, Estimate],
    lost: Mapping[str, Estimate],
    statistic: str,
    *,
    of_learner: bool = True,
) -> list[Claim]:
    """Claims that flows with a learned start lose little at first.

    Args:
        name: The start of the claims' names.
        says: The claim.
        without_spike: The share of runs without a spike, from 0 to 1, by case.
        lost: The early loss in %, by case.
        statistic: Which statistic `lost` is.
        of_learner: Whether they are about a learner that was trained before.
    """
    return [
        judge(
            f"{name}.no-spike",
            f"{says}; ours: in nine of ten runs",
            "share of runs in which no sender loses more than 10% of its packets in any of the "
            "first ten seconds; threshold: at least 90%",
            {case: share.mapped(lambda share: 100 * share) for case, share in without_spike.items()},
            "%",
            low=90.0,
            of="runs without a spike",
            of_learner=of_learner,
        ),
        judge(
            f"{name}.early-loss",
            "... ours: and few packets are lost in the first ten seconds together",
            f"share of all packets lost in the first ten seconds, {statistic}; threshold: at most 1%",
            {case: (one, Aim(high=MOST_EARLY, small=POINTS)) for case, one in lost.items()},
            "%",
            of="loss",
            of_learner=of_learner,
        ),
    ]


def _early(measured: Measured, one: RunRequest) -> list[str]:
    """Returns cells of the table: the loss in the first ten seconds."""
    runs = measured.runs(one)
    most = max(lost_early(run) or 0.0 for run in runs)
    worst = max(worst_second(run) for run in runs)
    spikes, of = _spikes(measured, one)
    # A learner's samples are its trainings; other schemes' samples are flows.
    of_trainings = len(one.models) > 1
    loss, ends = text_of((measured.mean if of_trainings else measured.median)(one, lost_early), "%")
    lost = f"{'mean' if of_trainings else 'median'} {loss}", ends
    return [*lost, f"{most:.3g} %", f"{worst:.3g} %", f"{spikes} of {of}"]


def _spikes(measured: Measured, one: RunRequest) -> tuple[int, int]:
    """Returns how many runs have a spike, of how many."""
    seconds = [worst_second(run) for run in measured.runs(one)]
    return sum(second > SPIKE for second in seconds), len(seconds)


def _count(n: int) -> str:
    return "one sender" if n == 1 else "two senders"


def _has_no_spike(run: Run) -> bool:
    return worst_second(run) <= SPIKE


def lost_early(run: Run) -> float | None:
    """Returns the share of all packets lost in the first ten seconds, in %."""
    return _lost(run, EARLY_S)


def worst_second(run: Run) -> float:
    """Returns the highest loss of one of the first ten seconds, in %, at most 100.

    It is relative to what is sent in that second. Data declared lost in a second may have been sent
    in the one before.
    """
    series = run["series"]
    seconds = zip(series["sent_mbps"][:EARLY_S], series["lost_mbps"][:EARLY_S], strict=True)
    # A loss in a second in which nothing is sent has no share: it counts as 100%.
    return max((100 * min(lost / (sent or lost), 1.0) for sent, lost in seconds if sent or lost), default=0.0)


def lost_in_a_minute(run: Run) -> float | None:
    """Returns the share of all packets lost in the first minute, in %."""
    return _lost(run, 60)


def _lost(run: Run, bins: int) -> float | None:
    share = share_lost(run["series"], 0.0, bins / len(run["series"]["loss"]))
    return None if share is None else 100 * share


def early_rate(run: Run) -> float | None:
    """Returns the throughput of all senders from 10 s to 60 s."""
    bins = len(run["series"]["loss"])
    return last_half("throughput_mbps", min(10 / bins, 0.5), min(60 / bins, 1.0))(run)


def off_its_share(run: Run) -> float:
    """Returns the sampled sender's mean distance from a fair share, in % of that."""
    fair = LINK_MBPS / senders(run)
    rates = [v or 0.0 for v in sampled_flow(run)["throughput_mbps"]]
    return 100 * sum(abs(rate - fair) for rate in rates) / (fair * len(rates))


FIGURES = (
    Figure(
        "fig7",
        "Throughput and loss of flows that begin with what was learned before",
        f"{PATH}; alpha is 4. In a and b, each seed's flows resume the networks that they trained "
        "in the 600 s before. In c, the flows of a run begin with one of several trainings of one recipe.",
        fig7,
    ),
)
