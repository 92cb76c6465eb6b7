"""Figure 11: the RTT of one flow on the default link, and the estimators' values.

It has both forms of Eq. 3.
"""

from __future__ import annotations

import tomllib
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headway._native import Scenario
from headway.report.lines import Axis
from headway.report.style import SOFT, Style
from headway.reproduce.bands import SIZE
from headway.reproduce.charts import titled
from headway.reproduce.claim import TIMES, Verdict, judge, text_of
from headway.reproduce.figure import Figure, FigureResult
from headway.reproduce.interval.groups import BY_NAME, EWMA, JK, JK_PRINTED, LATEST, MIN_FILTERED, specs
from headway.reproduce.interval.scatter import LOOKS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from headway.report.svg import Spec
    from headway.reproduce.claim import Claim
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.lab import Lab, RunRequest
    from headway.reproduce.measured import Measured
    from headway.runs.store import Run
    from headway.stats.estimate import Estimate

SCENARIO = "pantheon-default"
GROUPS = {JK: "I", JK_PRINTED: "I'"}
"""The paper does not say which group its log is from; this group it calls the best on this link.
Each reading of Eq. 3 is judged on the log of the flow that it clocks."""
MEANT = {JK: "Eq. 3 as Jacobson and Karels define it", JK_PRINTED: "Eq. 3 as it is printed"}
BIN_MS = 5.0
"""Length of a bin: the time of five packets on the link, so that the samples of a run stay below a
megabyte."""
ALPHA, BETA, WINDOW_S = 1 / 8, 3 / 4, 10.0
"""Values of section 3.2; `crates/policy/src/clock/estimate.rs` has the same."""
WITHIN = (10.0, 90.0)
"""Our limits for "a line within the data": at or above this many % of the samples."""
ON_TOP = 2.0
"""Our limit for "at the top of the data": on average at most this many times the newest RTT."""
CANNOT = {JK: "", JK_PRINTED: ", which the equation rules out: RTT_jk is at least four times RTT_ewma"}
SHOWN_S = 20.0
NAMES = (LATEST, EWMA, JK, MIN_FILTERED, JK_PRINTED)

Estimates = dict[str, list[float]]


def estimates(times_s: Sequence[float], rtts_ms: Sequence[float]) -> Estimates:
    """Returns the value of each estimator after each sample (Eq. 2 and 3).

    `RttEstimator` of crates/policy does the same.

    Args:
        times_s: The arrival times of samples, ascending.
        rtts_ms: The samples.
    """
    found: Estimates = {name: [] for name in NAMES}
    ewma, variation, least = rtts_ms[0], rtts_ms[0] / 2, deque[tuple[float, float]]()
    for number, (time, rtt) in enumerate(zip(times_s, rtts_ms, strict=True)):
        if number:
            variation = BETA * variation + (1 - BETA) * abs(ewma - rtt)
            ewma = (1 - ALPHA) * ewma + ALPHA * rtt
        # Eq. 2 comes first: the mean includes this sample.
        printed = BETA * ewma + (1 - BETA) * abs(ewma - rtt)
        # A sample is dropped if a later one is lower, so the remaining ones rise.
        while least and least[-1][1] >= rtt:
            least.pop()
        least.append((time, rtt))
        while least[0][0] <= time - WINDOW_S:
            least.popleft()
        for name, value in (
            (LATEST, rtt),
            (EWMA, ewma),
            (JK, ewma + 4 * variation),
            (MIN_FILTERED, least[0][1]),
            (JK_PRINTED, ewma + 4 * printed),
        ):
            found[name].append(value)
    return found


def propagation_ms(scenario: Scenario) -> float:
    """Returns the propagation RTT. Both directions have the bottleneck's delay."""
    return 2 * float(tomllib.loads(scenario.text)["bottleneck"]["delay"].removesuffix("ms"))


def of_run(run: Run, base_ms: float) -> tuple[list[float], Estimates]:
    """Returns times of arrival and the estimates of a run with time series.

    `base_ms` is its propagation RTT.
    """
    series = run["series"]
    both = [
        (time, base_ms + queue)
        for time, queue in zip(series["time_s"], series["queue_mean_ms"], strict=True)
        if queue is not None
    ]
    times, rtts = [time for time, _ in both], [rtt for _, rtt in both]
    return times, estimates(times, rtts)


class Log(NamedTuple):
    """The runs of a group, and the estimates of its flow under one reading of Eq. 3."""

    reading: str
    times: list[float]
    shown: Estimates
    """The estimates of the first run."""
    share: Mapping[str, Estimate]
    """The share of samples at which an estimate is at or above the newest RTT, in %."""
    ratio: Mapping[str, Estimate]
    """An estimate's mean divided by the mean of the newest RTT."""
    away: Mapping[str, Estimate]
    """An estimate's mean distance to the propagation RTT, in ms."""
    further: Mapping[str, Estimate]
    """How much further another estimate is from the propagation RTT than RTT_jk, in ms."""

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the lines of the paper's figure."""
        return (LATEST, EWMA, self.reading, MIN_FILTERED)


def log_of(reading: str, measured: Measured, wanted: RunRequest, base_ms: float) -> Log:
    """Returns the estimates of a group's runs."""
    made = {run["seed"]: of_run(run, base_ms) for run in measured.runs(wanted)}

    def mean(of: Callable[[Estimates, str], float], name: str) -> Estimate:
        return measured.mean(wanted, lambda run: of(made[run["seed"]][1], name))

    def away(found: Estimates, name: str) -> float:
        return float(np.mean(np.abs(np.subtract(found[name], base_ms))))

    def further(found: Estimates, name: str) -> float:
        return away(found, name) - away(found, reading)

    def share(found: Estimates, name: str) -> float:
        return above(found[name], found[LATEST])

    def ratio(found: Estimates, name: str) -> float:
        return float(np.mean(found[name]) / np.mean(found[LATEST]))

    names = (LATEST, EWMA, reading, MIN_FILTERED)
    times, shown = made[measured.runs(wanted)[0]["seed"]]
    shares, ratios, distances = ({name: mean(of, name) for name in names} for of in (share, ratio, away))
    return Log(
        reading,
        times,
        shown,
        shares,
        ratios,
        distances,
        {name: mean(further, name) for name in (EWMA, MIN_FILTERED)},
    )


def fig11(lab: Lab) -> FigureJob:
    """Draws the newest RTT and the estimates over time, of a flow of either reading."""
    scenario = Scenario.load(SCENARIO)
    wanted = {
        reading: lab.want(f"group {group}", specs(lab)[group], scenario, series=True, bin_ms=BIN_MS, runs=10)
        for reading, group in GROUPS.items()
    }
    measured = yield list(wanted.values())
    base_ms = propagation_ms(scenario)
    logs = [log_of(reading, measured, one, base_ms) for reading, one in wanted.items()]
    claims = {log.reading: judged(log) for log in logs}
    looks = {name: LOOKS[name] for name in NAMES} | {LATEST: Style(SOFT, LOOKS[LATEST].marker, LATEST, "n0")}
    panels = [
        (f"Group {GROUPS[log.reading]}: {MEANT[log.reading]}", panel(log.times, log.shown, log.names, looks))
        for log in logs
    ]
    notes = [
        which_explains(claims),
        *(nearest(log, claims[log.reading]) for log in logs),
        "By both readings of Eq. 3, RTT_jk is never below the newest RTT, and RTT_min-filtered "
        "lies between the newest RTT and the propagation RTT. This follows from the equations for "
        "any samples, so no claim tests it. Therefore RTT_jk cannot be the closest to the "
        "propagation RTT by either reading. As printed, it is at least four times RTT_ewma, so it "
        f"cannot be within {ON_TOP:g} times the newest RTT. These verdicts are certain before any "
        "run; the runs show how large the differences are.",
        f'The limit of {ON_TOP:g} for "at the top" is ours. Any limit between the two readings\' '
        "ratios in the table (mean over the newest's) would give the same verdicts.",
        f"A sample is {base_ms:g} ms of propagation plus the mean queueing delay of the packets "
        f"that arrived in {BIN_MS:g} ms. The curves show the first run, and the RTT's scales of the two panels "
        "differ.",
    ]
    every = [claim for of_reading in claims.values() for claim in of_reading]
    return FigureResult(titled(panels, looks, 2), every, table(logs), notes=notes)


def judged(log: Log) -> list[Claim]:
    """Claims of section 4 about figure 11, with one reading of Eq. 3."""
    name, meant = f"fig11.{log.reading}", f"{MEANT[log.reading]}, group {GROUPS[log.reading]}"
    return [
        judge(
            f"{name}-ewma-within",
            f"RTT_ewma draws a line within the latest RTT data (4): {meant}",
            "share of samples at which EWMA is at or above the newest RTT; "
            f"our threshold: {WITHIN[0]:g}% to {WITHIN[1]:g}%",
            log.share[EWMA],
            "%",
            low=WITHIN[0],
            high=WITHIN[1],
            of="samples",
        ),
        judge(
            f"{name}-on-top",
            f"RTT_jk is consistently at the top of the latest RTT (4): {meant}",
            "mean of the estimate divided by the mean of the newest RTT; our threshold: at most "
            f"{ON_TOP:g}{CANNOT[log.reading]}",
            log.ratio[log.reading],
            high=ON_TOP,
            of="estimate over RTT",
        ),
        judge(
            f"{name}-closest",
            f"RTT_jk is the closest to the propagation RTT (4): {meant}",
            "mean distance of each other estimate to the propagation RTT, minus that of RTT_jk; "
            "threshold: above 0, which the equations rule out: propagation <= RTT_min-filtered <= "
            "newest <= RTT_jk",
            log.further,
            "ms",
            more=TIMES["ms"],
            of="distance to the propagation RTT",
        ),
    ]


def which_explains(claims: Mapping[str, Sequence[Claim]]) -> str:
    """Says with which reading of Eq. 3 more of the claims about figure 11 hold.

    Neither can explain all: no estimate is nearer to the propagation RTT than the minimum is.
    """
    held = {reading: [c.verdict for c in of].count(Verdict.HOLDS) for reading, of in claims.items()}
    unsure = any(claim.verdict is Verdict.OPEN for of in claims.values() for claim in of)
    most = [reading for reading in held if held[reading] == max(held.values())]
    if len(most) == 1:
        said = f"Neither explains all of figure 11; {most[0]} explains more of it"
    else:
        said = "Neither explains all of figure 11, and they explain the same number of its claims"
    parts = []
    for reading, of in claims.items():
        others = [f"{claim.id} ({claim.verdict})" for claim in of if claim.verdict is not Verdict.HOLDS]
        parts.append(
            f"{reading}: {held[reading]} of {len(of)} hold" + (f", not {', '.join(others)}" if others else "")
        )
    return f"{said}{', as far as is sure' if unsure else ''}. {'; '.join(parts)}."


def nearest(log: Log, claims: Sequence[Claim]) -> str:
    """Says which estimate is the closest to the propagation RTT.

    It also says that the paper's sentences may contradict each other.
    """
    known = {name: metric.mean for name, metric in log.away.items() if metric.mean is not None}
    least = min((name for name in known if name != LATEST), key=known.__getitem__)
    line = f"Group {GROUPS[log.reading]}: the closest to the propagation RTT is {least}, {known[least]:.3g} ms away"
    if next(c for c in claims if c.id.endswith("closest")).verdict is not Verdict.FAILS:
        return f"{line}."
    return f"{line}; RTT_jk, which the paper calls the closest, is {known[log.reading]:.3g} ms away."


def table(logs: Sequence[Log]) -> list[list[str]]:
    """Makes a table of every estimate of both flows."""
    rows = [
        [
            "group",
            "estimate",
            "mean distance to the propagation RTT (ms)",
            "95% interval",
            "mean over the newest's",
            "at or above the newest RTT (% of samples)",
        ]
    ]
    for log in logs:
        rows += [
            [
                GROUPS[log.reading],
                name,
                *text_of(log.away[name]),
                text_of(log.ratio[name])[0],
                text_of(log.share[name])[0],
            ]
            for name in log.names
        ]
    return rows


def above(values: Sequence[float], others: Sequence[float]) -> float:
    """Returns the share of samples at which one is at or above the other, in %."""
    return 100 * sum(a >= b for a, b in zip(values, others, strict=True)) / len(values)


def panel(
    times: Sequence[float], found: dict[str, list[float]], names: Sequence[str], looks: dict[str, Style]
) -> Spec:
    """Draws estimates over the first seconds, thinned to what is visible."""
    shown = [k for k, time in enumerate(times) if time <= SHOWN_S]
    shown = shown[:: max(1, len(shown) // 1500)]
    values = [found[name][k] for name in names for k in shown]
    # The first second of Jacobson and Karels' estimate is cut: its variation begins at half of the
    # RTT.
    low, high = min(values, default=0.0), float(np.quantile(values, 0.998)) if values else 1.0
    margin = 0.06 * (high - low or 1.0)
    y = Axis("RTT (ms)", low - margin, high + margin).encode("y", 5)
    end = min(SHOWN_S, times[-1])
    at = {"x": Axis("time (s)", 0.0, end).encode("x", 6, grid=False, titlePadding=3), "y": y}
    layers: list[Spec] = []
    for number, name in enumerate(names):
        points = [{"x": times[k], "y": found[name][k]} for k in shown]
        # The newest RTT's line is wider, or the EWMA would hide it.
        wide: Spec = {"strokeWidth": 5.0, "opacity": 0.5} if name == LATEST else {"strokeWidth": 1.3}
        line: Spec = {"type": "line", "color": looks[name].colour, "clip": True} | wide
        layers.append({"data": {"values": points}, "mark": line, "encoding": dict(at)})
        gap = max(1, len(points) // 6)
        dot: Spec = {"type": "point", "filled": True, "shape": looks[name].marker, "color": looks[name].colour}
        some = points[number * gap // len(names) :: gap]
        layers.append({"data": {"values": some}, "mark": dot | {"size": 70, "opacity": 1}, "encoding": dict(at)})
    named = [layer | {"name": f"estimates-{k}"} for k, layer in enumerate(layers)]
    return {"width": SIZE[0], "height": 220, "layer": named}


FIGURES = (
    Figure(
        "fig11",
        "The latest RTT and the estimates on the default link",
        f"Groups {' and '.join(f'{group} ({BY_NAME[group].title})' for group in GROUPS.values())} on Pantheon's "
        f"default link, 12 Mbit/s and 120 ms, the first {SHOWN_S:g} s. The RTT's scales of the two panels differ. "
        "Claims are of ten runs of 60 s.",
        fig11,
    ),
)
