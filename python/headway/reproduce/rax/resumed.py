"""Section 4.3: flows that begin with what was learned before. Figure 7."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.reproduce.charts import titled
from headway.reproduce.claim import LESS, MORE, each_within, text_of
from headway.reproduce.figure import Drawn, Figure
from headway.reproduce.rax.link import (
    AGAIN_S,
    BIN_MS,
    ENOUGH_MBPS,
    LINK_MBPS,
    PATH,
    UNSEEN,
    drawn,
    fresh,
    last_half,
    resumed_runs,
    runs_of,
    senders,
    share_lost,
)
from headway.reproduce.rax.panels import of_one_sender

if TYPE_CHECKING:
    from collections.abc import Callable

    from headway.reproduce.figure import Made
    from headway.reproduce.lab import Lab
    from headway.runs.store import Run

MOST_AGAIN = 1.0
"""What may be lost in the first ten seconds for there to be no spike, in %."""


def fig7(lab: Lab) -> Made:
    """One of one and one of two senders that go on from their own networks, and from a shipped one."""
    again = {n: resumed_runs(lab, f"resumed, {n}", 4, f"rax-{n}") for n in (1, 2)}
    first = {n: runs_of(lab, f"from nothing, {n}", fresh(4), f"rax-{n}") for n in (1, 2)}
    shipped = {n: runs_of(lab, f"shipped, {n}", "rax-pretrained", f"rax-{n}") for n in (1, 2)}
    measured = yield [*again.values(), *first.values(), *shipped.values()]
    chart = titled(
        [
            *of_one_sender(measured, {again[1]: "(a) resumed, one sender"}, second_half=True),
            *of_one_sender(measured, {again[2]: "(b) resumed, one of two"}, second_half=True),
            *of_one_sender(measured, {shipped[1]: "(c) rax-pretrained, one sender"}),
        ],
        None,
        2,
    )
    early = {
        **{f"resumed, {_count(n)}": measured.median(again[n], lost_early(0.5)) for n in again},
        **{f"rax-pretrained, {_count(n)}": measured.median(shipped[n], lost_early(0.0)) for n in shipped},
    }
    table = [["flows", "senders", "lost in the first 10 s, median", "95% interval", "largest"]]
    for label, of_count, begin in (
        ("from nothing", first, 0.0),
        ("resumed", again, 0.5),
        ("rax-pretrained", shipped, 0.0),
    ):
        for n, one in of_count.items():
            found = measured.median(one, lost_early(begin))
            most = max(lost_early(begin)(run) or 0.0 for run in measured.runs(one))
            table.append([label, str(n), *text_of(found, "%"), f"{most:.3g} %"])
    claims = [
        each_within(
            "fig7.no-spike",
            "Pre-training can avoid the spike of packet loss in the beginning (4.3); ours: none in the first ten "
            "seconds",
            "share of all packets lost in the first ten seconds, median of the runs; at most 1% wanted",
            early,
            "%",
            high=MOST_AGAIN,
        ),
        each_within(
            "fig7.resumes",
            "Flows simply resume where they ended training before (4.3)",
            "throughput of all senders from 10 s after the new start to 60 s, median; at least 19 Mbit/s wanted",
            {f"{_count(n)}": measured.median(again[n], _early_rate) for n in again},
            "Mbit/s",
            low=ENOUGH_MBPS,
        ),
        each_within(
            "fig7.faster",
            "Pre-training greatly speeds up the initial training (4.3)",
            "share lost in the first minute, resumed less from nothing, runs of one seed; below 0 wanted",
            {f"{_count(n)}": measured.across([again[n], first[n]], _less_lost) for n in again},
            "points",
            high=LESS,
        ),
        each_within(
            "fig7.variance",
            "With two senders the variance is large beside flows that were not pre-trained (4.3)",
            "how far one of two senders is from its half of the link in the mean over the run, resumed less from "
            "nothing, runs of one seed; above 0 wanted",
            {"two senders": measured.across([again[2], first[2]], _further_off)},
            "points",
            low=MORE,
        ),
    ]
    notes = [
        UNSEEN,
        "Resumed: runs of 1200 s, in whose middle every flow is replaced by one that begins, at a window of 1, "
        "with the networks and optimisers that it has saved as text; what is still in flight then is nobody's.",
        "`rax-pretrained` begins with `models/rax-v1`, which one flow learned in 600 s on this link with one "
        "sender.",
    ]
    return Drawn(chart, claims, table, notes)


def _count(n: int) -> str:
    return "one sender" if n == 1 else "two senders"


def lost_early(begin: float) -> Callable[[Run], float | None]:
    """The share of all packets lost in the ten seconds after that share of a run, in %."""

    def of(run: Run) -> float | None:
        return _lost(run, begin, AGAIN_S)

    return of


def _lost(run: Run, begin: float, seconds: float) -> float | None:
    bins = len(run["series"]["loss"])
    share = share_lost(run["series"], begin, begin + seconds * 1e3 / BIN_MS / bins)
    return None if share is None else 100 * share


def _early_rate(run: Run) -> float | None:
    bins = len(run["series"]["loss"])
    return last_half("throughput_mbps", min(0.5 + 10 / bins, 0.75), min(0.5 + 60 / bins, 1.0))(run)


def _less_lost(again: Run, first: Run) -> float | None:
    ours, theirs = _lost(again, 0.5, 60.0), _lost(first, 0.0, 60.0)
    return None if ours is None or theirs is None else ours - theirs


def _further_off(again: Run, first: Run) -> float:
    return _off(again, 0.5) - _off(first, 0.0)


def _off(run: Run, begin: float) -> float:
    fair = LINK_MBPS / senders(run)
    rates = [v or 0.0 for v in drawn(run)["throughput_mbps"]]
    rates = rates[round(begin * len(rates)) :]
    return 100 * sum(abs(rate - fair) for rate in rates) / (fair * len(rates))


FIGURES = (
    Figure(
        "fig7",
        "Throughput and loss of flows that begin with what was learned before",
        f"{PATH}; alpha is 4. Each seed's flows resume their own networks of the 600 s before (a, b); all begin "
        "with the same shipped one (c).",
        fig7,
    ),
)
