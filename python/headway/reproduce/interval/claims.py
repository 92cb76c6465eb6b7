"""The claims of section 4 about each network."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import TYPE_CHECKING

from headway.reproduce.claim import PERCENT, POINTS, Aim, Zone, judge
from headway.reproduce.interval.group_results import (
    CLOSE,
    CLOSE_LOSS,
    DELAY,
    LOSS,
    QUANTITIES,
    SAID,
    THROUGHPUT,
    counted,
    kept_in,
    listed,
)
from headway.stats.posthoc import LEVEL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from headway.reproduce.claim import Claim
    from headway.reproduce.interval.group_results import GroupResults, Quantity

HALF = (-65.0, -35.0)
"""Our limits for "almost half": 35% to 65% less."""
NEAR = {
    quantity: Aim(-CLOSE_LOSS, CLOSE_LOSS, small=POINTS) if quantity == LOSS else Aim(-CLOSE, CLOSE, small=PERCENT)
    for quantity in QUANTITIES
}
"""Our limit for a "small" distance by its quantity: in points of loss, and in % of the others."""
OUR_LIMITS = f"our limits: {CLOSE:g}%, for loss {CLOSE_LOSS:g} point; threshold: all within them"


def differ(figure: str, found: GroupResults) -> Claim:
    """Claims that the configuration matters: Tables 3 to 9."""
    manova = found.manova
    verdicts = {
        # If groups do not differ significantly, they need not be alike.
        statistic.name: Zone.CLAIMED if statistic.p < LEVEL else Zone.UNCLEAR
        for statistic in (manova.statistics if manova and found.has_enough else ())
    }
    quantities = listed(kept_in(manova) if manova else QUANTITIES)
    return judge(
        f"{figure}.manova",
        "All multivariate measures agree that there is a significant difference (p < 0.05) (4)",
        f"statistics of the one-way MANOVA of {quantities} over the 18 groups whose p is below 0.05; "
        "threshold: all",
        verdicts,
    )


def first(found: GroupResults, name: str, groups: str, paper: str, quantity: Quantity = THROUGHPUT) -> Claim:
    """Claims that groups take the first places, or are as good as the last of these.

    There are as many places as groups.
    """
    places = {1: "first", 2: "first two", 3: "first three"}[len(groups)]
    return judge(
        name,
        paper,
        f"how many of {', '.join(groups)} are among the {places} in {SAID[quantity]}: "
        f"{counted(len(groups), quantity)}; threshold: all",
        {group: partial(found.among, group, quantity, len(groups)) for group in groups},
    )


def low(found: GroupResults, name: str, groups: str, paper: str) -> Claim:
    """Claims that groups have low delay and loss.

    They are among the first as many as Table 10 names, three at least.
    """
    places = max(3, len(groups))
    return judge(
        name,
        paper,
        f"how many of {', '.join(groups)} are among the lowest {places} in p95 delay and in loss: "
        f"{counted(places, DELAY, LOSS)}; threshold: all",
        {f"{g} in {SAID[q]}": partial(found.among, g, q, places) for g in groups for q in (DELAY, LOSS)},
    )


def over(
    found: GroupResults,
    name: str,
    pairs: Sequence[tuple[str, str]],
    paper: str,
    how: str,
    quantities: Sequence[Quantity],
    *,
    at_least: float = float("-inf"),
    at_most: float = float("inf"),
    less: float | None = None,
) -> Claim:
    """Returns how far groups' means lie above others', in % of these."""
    return judge(
        name,
        paper,
        how,
        {f"{a} over {b}, {SAID[q]}": found.percent(a, b, q) for q in quantities for a, b in pairs},
        "%",
        low=at_least,
        high=at_most,
        less=less,
    )


def near(
    found: GroupResults, name: str, pairs: Mapping[Quantity, Sequence[tuple[str, str]]], paper: str, how: str
) -> Claim:
    """Claims that groups are close to others in quantities, in either direction.

    Each quantity has its pairs.
    """
    verdicts = {
        f"{a} to {b}, {SAID[quantity]}": (found.apart(a, b, quantity), NEAR[quantity])
        for quantity, of in pairs.items()
        for a, b in of
    }
    return judge(name, paper, f"{how}; {OUR_LIMITS}", verdicts)


def default(found: GroupResults, figure: str) -> list[Claim]:
    """Claims of figure 4."""
    return [first(found, f"{figure}.I-best", "I", "Group I reaches the highest throughput among others (4)")]


def static(found: GroupResults, figure: str) -> list[Claim]:
    """Claims of figure 5."""
    return [
        first(found, f"{figure}.K-leads", "K", "Group K leads the throughput performance (4)"),
        over(
            found,
            f"{figure}.C-within-5",
            [("C", "K")],
            "The throughput of C is only 5% less than that of K (4)",
            "difference of C's throughput from K's, in % of K's; threshold: at least -5%",
            [THROUGHPUT],
            at_least=-CLOSE,
        ),
    ]


def walking(found: GroupResults, figure: str) -> list[Claim]:
    """Claims of figure 6."""
    fast, balanced = "LFK", "HBC"
    return [
        first(found, f"{figure}.top-3", fast, "L, F and K become the top 3 in throughput (4)"),
        over(
            found,
            f"{figure}.throughput-margin",
            list(product(balanced, fast)),
            "The throughput margin from L, F and K to H, B and C is less than 8% (4)",
            "difference of the throughput of H, B and C from that of each of L, F and K, in % of "
            "the latter; threshold: above -8%",
            [THROUGHPUT],
            at_least=-8.0,
        ),
        over(
            found,
            f"{figure}.delay-margin",
            list(product(fast, balanced)),
            "... but the delay margin is more than 80% (4)",
            "difference of the p95 delay of L, F and K from that of each of H, B and C, in % of "
            "the latter; threshold: above 80%",
            [DELAY],
            at_least=80.0,
        ),
    ]


def taxi(found: GroupResults, figure: str) -> list[Claim]:
    """Claims of figure 7."""
    pairs = [("A", "J"), ("A", "K")]
    return [
        first(found, f"{figure}.J-K-lead", "JK", "J and K lead throughput (4)"),
        over(
            found,
            f"{figure}.A-within-5",
            pairs,
            "A's throughput is less than 5% below that of J and K (4)",
            "difference of A's throughput from J's and from K's, in % of the latter; threshold: above -5%",
            [THROUGHPUT],
            at_least=-CLOSE,
        ),
        over(
            found,
            f"{figure}.A-half",
            pairs,
            "A's delay and loss are almost half of those of J and K (4)",
            "difference of A's p95 delay and loss from J's and from K's, in % of the latter; our "
            "threshold: -65% to -35%",
            [DELAY, LOSS],
            at_least=HALF[0],
            at_most=HALF[1],
        ),
    ]


def bus(found: GroupResults, figure: str) -> list[Claim]:
    """Claims of figure 8."""
    pairs = list(product("BC", "HJK"))
    return [
        first(found, f"{figure}.top-3", "HJK", "H, J and K become the top 3 in throughput (4)"),
        over(
            found,
            f"{figure}.B-C-comparable",
            pairs,
            "The throughput of B and C is comparable to the highest (4)",
            "difference of the throughput of B and of C from that of each of H, J and K, in % of "
            "the latter; our threshold: at least -5%",
            [THROUGHPUT],
            at_least=-CLOSE,
        ),
        over(
            found,
            f"{figure}.B-C-better",
            pairs,
            "... but they have better delay and loss (4)",
            "difference of the p95 delay and loss of B and of C from those of each of H, J and K, "
            "in % of the latter; threshold: below 0",
            [DELAY, LOSS],
            less=PERCENT,
        ),
    ]


def low_bdp(found: GroupResults, figure: str) -> list[Claim]:
    """Claims of figure 9."""
    return [
        first(found, f"{figure}.J-K-lead", "KJ", "K and J are the first and second in throughput (4)"),
        low(found, f"{figure}.M-Q-low", "MQ", "Q and M preserve the delay and loss (4)"),
        near(
            found,
            f"{figure}.near",
            {quantity: list(product("QM", "KJ")) for quantity in QUANTITIES},
            "The distance of Q and M to K and J in throughput, delay and loss is small (4)",
            "Q and M compared with each of K and J in throughput, p95 delay and loss",
        ),
    ]


def high_bdp(found: GroupResults, figure: str) -> list[Claim]:
    """Claims of figure 10. Text and Table 10 differ on them."""
    return [
        first(found, f"{figure}.K-Q-lead", "KQ", "Q and K become the top 2 in throughput (4, text)"),
        first(found, f"{figure}.K-O-lead", "KO", "K and O have the higher throughput (Table 10)"),
        low(found, f"{figure}.A-K-M-low", "AKM", "K, M and A keep the delay and loss low (4)"),
        judge(
            f"{figure}.K-Q-comparable",
            "K and Q's delay and loss are comparable to the lowest (4)",
            "K and Q compared with the lowest other group in p95 delay and in loss, whichever that is; "
            f"{OUR_LIMITS}",
            {
                f"{group} to the lowest other, {SAID[quantity]}": (found.from_best(group, quantity), NEAR[quantity])
                for quantity in (DELAY, LOSS)
                for group in "KQ"
            },
        ),
    ]


OF_FIGURE: dict[int, Callable[[GroupResults, str], list[Claim]]] = {
    4: default,
    5: static,
    6: walking,
    7: taxi,
    8: bus,
    9: low_bdp,
    10: high_bdp,
}
