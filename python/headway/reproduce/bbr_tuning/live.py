"""Figures 2 and 4 over the kernel's own BBR.

Flows run behind emulated links, in real time. An agent tunes them over ZeroMQ.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headway._native import RunError, Scenario
from headway.report.lines import Axis
from headway.reproduce.bands import scheme_lines, whole
from headway.reproduce.bbr_tuning.chain import tuned
from headway.reproduce.bbr_tuning.faults import (
    lost_rate_s,
    median_line,
    peak_rtt_ms,
    stale_btlbw_s,
    stale_rtprop_s,
)
from headway.reproduce.bbr_tuning.joining import converges_s, mean_rtts, peak_ms, reacts_s
from headway.reproduce.bbr_tuning.path import BIN_MS, LINUX, PPO, RUNS, TUNED, VANILLA
from headway.reproduce.charts import chosen, titled
from headway.reproduce.claim import TIMES, judge, text_of
from headway.reproduce.figure import Figure, FigureResult
from headway.runs.task import KERNEL, SIM

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from headway.reproduce.bbr_tuning.chain import Chain
    from headway.reproduce.claim import Claim
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.lab import Lab, RunRequest
    from headway.reproduce.measured import Measured, Of
    from headway.runs.store import KeptSeries, Run
    from headway.stats.estimate import Estimate

MODEL = "bbr-tuner-ppo-v1"
BBR_LIVE, PPO_LIVE = "kernel's BBR", "kernel's BBR, PPO"
DEFAULTS_LIVE, PAPERS_LIVE = "headway_bbr, 10 rounds", "headway_bbr, 8 rounds"
"""Controls with fixed windows. As the tuned flows, they have headway_bbr with a host and an
agent."""
DECIDES = {
    DEFAULTS_LIVE: "rtprop_window=10s,btlbw_window=10",
    PAPERS_LIVE: "rtprop_window=10s,btlbw_window=8",
    PPO_LIVE: MODEL,
}
"""The model or the windows of each scheme's chain."""
BBR_SIM, PPO_SIM = "simulated BBR", "simulated BBR, PPO"
LOOKS = {
    BBR_LIVE: ("vermillion", "up"),
    DEFAULTS_LIVE: ("green", "down"),
    PAPERS_LIVE: ("purple", "diamond"),
    PPO_LIVE: ("blue", "circle"),
    BBR_SIM: ("orange", "up"),
    PPO_SIM: ("sky", "square"),
}
NEAR = 0.3
"""The kernel's gain agrees with the simulated one's if it differs by at most this share of
vanilla's value."""


@dataclass(frozen=True)
class Quantity:
    """A quantity of a run that tuning should make smaller."""

    name: str
    title: str
    unit: str
    of: Of


def fig2a(lab: Lab) -> FigureJob:
    """Draws RTprop and throughput as the round trip grows from 40 to 400 ms."""
    quantities = [
        Quantity(
            "stale", "time from the step until RTprop is at least 90% of the new round trip", "s", stale_rtprop_s
        ),
        Quantity(
            "throughput",
            "time from the step until the flow uses 90% of the link on average over the following 5 s",
            "s",
            lost_rate_s,
        ),
    ]
    columns: dict[KeptSeries, Axis] = {
        "rtprop_ms": whole("RTprop (ms)", [450.0]),
        "throughput_mbps": whole("throughput (Mbit/s)", [20.0]),
    }
    return (yield from _step(lab, "fig2a-kernel", "bbr-rtt-step", columns, quantities))


def fig2b(lab: Lab) -> FigureJob:
    """Draws BtlBw and RTT as the link falls from 20 to 5 Mbit/s."""
    quantities = [
        Quantity("stale", "time from the step until BtlBw is within 10% of the new rate", "s", stale_btlbw_s),
        Quantity("rtt", "largest smoothed RTT after the step", "ms", peak_rtt_ms),
    ]
    columns: dict[KeptSeries, Axis] = {
        "btlbw_mbps": whole("BtlBw (Mbit/s)", [22.0]),
        "rtt_ms": whole("smoothed RTT (ms)", [400.0]),
    }
    return (yield from _step(lab, "fig2b-kernel", "bbr-rate-step", columns, quantities))


def _step(
    lab: Lab, figure: str, scenario: str, columns: dict[KeptSeries, Axis], quantities: Sequence[Quantity]
) -> FigureJob:
    with _chains() as chains:
        wanted = _want(lab, scenario, chains)
        measured = yield list(wanted.values())
        lab.notes += _carried(chains)
    looks = chosen({label: LOOKS[label] for label in wanted})
    end = max(one.seconds for one in wanted.values())
    panels = [
        (
            axis.title.partition(" (")[0],
            scheme_lines(
                {label: median_line(measured.runs(one), column) for label, one in wanted.items()}, looks, axis, end
            ),
        )
        for column, axis in columns.items()
    ]
    return FigureResult(
        titled(panels, looks, 2),
        _claims(figure, measured, wanted, quantities),
        _table(measured, wanted, quantities),
        notes=_controls(measured, wanted, quantities),
    )


def fig4(lab: Lab) -> FigureJob:
    """Draws RTTs and throughput while five flows join and leave."""
    quantities = [
        Quantity("converges", "time to converge after the fifth flow has joined", "s", converges_s),
        Quantity("peak", "peak RTT", "ms", peak_ms),
        Quantity("reacts", "time from the peak until the RTT is half way down", "s", reacts_s),
    ]
    with _chains() as chains:
        wanted = _want(lab, "bbr-join-leave", chains)
        measured = yield list(wanted.values())
        lab.notes += _carried(chains)
    looks = chosen({label: LOOKS[label] for label in wanted})
    end = max(one.seconds for one in wanted.values())
    rtts = {label: _median_rtts(measured.runs(one)) for label, one in wanted.items()}
    most = max((v or 0.0 for line in rtts.values() for _, v in line), default=0.0)
    rates = {label: median_line(measured.runs(one), "throughput_mbps") for label, one in wanted.items()}
    panels = [
        ("RTT, mean of all flows", scheme_lines(rtts, looks, Axis("RTT (ms)", 0.0, 1.06 * most or 1.0), end)),
        ("throughput of all flows", scheme_lines(rates, looks, whole("throughput (Mbit/s)", [10.0]), end)),
    ]
    return FigureResult(
        titled(panels, looks, 2),
        _claims("fig4-kernel", measured, wanted, quantities),
        _table(measured, wanted, quantities),
        notes=_controls(measured, wanted, quantities),
    )


@contextmanager
def _chains() -> Iterator[dict[str, Chain]]:
    """Returns the chains of all schemes that have one. Raises MissingError."""
    with ExitStack() as running:
        yield {label: running.enter_context(tuned(decides)) for label, decides in DECIDES.items()}


def _want(lab: Lab, scenario: str, chains: dict[str, Chain]) -> dict[str, RunRequest]:
    """Asks for the same runs in the kernel and simulated.

    In the kernel they are vanilla, tuned and with the controls; simulated, vanilla and tuned.
    """
    where = Scenario.load(scenario)

    def live(label: str, spec: str) -> RunRequest:
        return lab.want(label, lab.scheme(spec), where, series=True, bin_ms=BIN_MS, runs=RUNS)

    lab.around |= {chain.spec: chain.around for chain in chains.values()}
    vanilla = live(BBR_LIVE, VANILLA[LINUX])
    return {
        BBR_LIVE: vanilla,
        **{label: live(label, chain.spec) for label, chain in chains.items()},
        BBR_SIM: replace(vanilla, label=BBR_SIM, world=SIM),
        PPO_SIM: replace(vanilla, label=PPO_SIM, spec=TUNED[PPO], world=SIM),
    }


def _claims(
    figure: str, measured: Measured, wanted: dict[str, RunRequest], quantities: Sequence[Quantity]
) -> list[Claim]:
    found = []
    for one in quantities:
        found += [
            judge(
                f"{figure}.{one.name}",
                f"Ours: if the shipped PPO model tunes the kernel's BBR over ZeroMQ, this is smaller: {one.title}",
                "tuned minus each of the others, paired by seed: the kernel's BBR, and headway_bbr with the "
                "same host and agent but fixed windows; threshold: below 0",
                {
                    f"against {other}": measured.difference(wanted[PPO_LIVE], wanted[other], one.of)
                    for other in (BBR_LIVE, DEFAULTS_LIVE, PAPERS_LIVE)
                },
                one.unit,
                less=TIMES[one.unit],
                of_each=True,
                of_learner=False,
            ),
            judge(
                f"{figure}.{one.name}-as-simulated",
                "Ours: ... by as much as in the simulation",
                "change by tuning in % of what is not tuned: kernel minus simulation; threshold: within "
                f"{100 * NEAR:g} points",
                {
                    f"against {other}": measured.kept(
                        (wanted[other], wanted[PPO_LIVE]), (wanted[BBR_SIM], wanted[PPO_SIM]), one.of
                    )
                    for other in (BBR_LIVE, DEFAULTS_LIVE)
                },
                "points",
                low=-100 * NEAR,
                high=100 * NEAR,
                of_learner=False,
            ),
        ]
    return found


def _table(measured: Measured, wanted: dict[str, RunRequest], quantities: Sequence[Quantity]) -> list[list[str]]:
    def gain(tuned: str, vanilla: str, of: Of) -> Estimate:
        return measured.percent(wanted[tuned], wanted[vanilla], of)

    titles = [*wanted, "kernel's gain (%)", "gain over headway_bbr, 10 rounds (%)", "simulated gain (%)"]
    table = [["quantity", *(cell for title in titles for cell in (title, "95% interval"))]]
    for one in quantities:
        metrics = [measured.mean(point, one.of) for point in wanted.values()]
        pairs = ((PPO_LIVE, BBR_LIVE), (PPO_LIVE, DEFAULTS_LIVE), (PPO_SIM, BBR_SIM))
        metrics += [gain(*pair, one.of) for pair in pairs]
        table.append([f"{one.title} ({one.unit})", *(cell for metric in metrics for cell in text_of(metric))])
    return table


def _controls(measured: Measured, wanted: dict[str, RunRequest], quantities: Sequence[Quantity]) -> list[str]:
    """Returns what host, agent and headway_bbr change by themselves, a line for each quantity."""
    lines = []
    for one in quantities:
        middle, ends = text_of(measured.difference(wanted[DEFAULTS_LIVE], wanted[BBR_LIVE], one.of))
        lines.append(
            f"{DEFAULTS_LIVE} minus {BBR_LIVE}, in pairs of seeds: {middle} {one.unit} ({ends}): {one.title}."
        )
    return lines


def _median_rtts(runs: Sequence[Run]) -> list[tuple[float, float | None]]:
    """Returns the median over runs of the mean of all flows' smoothed RTTs."""
    found = []
    for points in zip(*(mean_rtts(run) for run in runs), strict=True):
        known = sorted(value for _, value in points if value is not None)
        found.append((points[0][0], known[len(known) // 2] if known else None))
    return found


def _carried(chains: Mapping[str, Chain]) -> list[str]:
    """Returns what host, agent and guard counted while these runs were made.

    A chain whose runs had all finished before is left out. A run in which host and agent set
    nothing has failed.
    """
    names = (
        "stats_answered",
        "stats_lost",
        "stats_superseded",
        "applied",
        "applies_failed",
        "agent_policy_failures",
    )
    lines, trips = [], []
    for label, chain in chains.items():
        try:
            counted = chain.counters()
            if not counted.get("applied"):
                continue
            trips.append(f"{label}: {chain.guard_trips()}")
        except RunError as why:
            lines.append(f"{label}: a host, an agent or headwayd did not answer at the end: {why}.")
            continue
        if label == PPO_LIVE:
            counts = ", ".join(f"{name} {counted.get(name, 0):,}" for name in names)
            lines.append(
                f"Counters of the host and the agent, with {chain.decides} over ZeroMQ and CURVE: {counts}."
            )
    if trips:
        lines.append(f"Takeovers, in which the guard gave a flow of headway_bbr to Cubic: {'; '.join(trips)}.")
    return lines


FIGURES = tuple(
    Figure(
        f"{name}-kernel",
        title,
        f"{path}. Medians of 30 seeds, bins of {BIN_MS:g} ms, in real time: headway reproduce "
        f"bbr-tuning {name} --world kernel. Vanilla is the kernel's tcp_bbr. Tuned flows use "
        "headwayd's headway_bbr: a host samples them with sock_diag, and an agent with the "
        "shipped model sets their windows over ZeroMQ. Controls have headway_bbr, a host and an agent "
        "too, but fixed windows: 10 s with 10 rounds, and with the paper's 8. The same runs in "
        "simulated time are shown for comparison.",
        make,
        KERNEL,
    )
    for name, title, path, make in (
        (
            "fig2a",
            "The kernel's BBR, vanilla and tuned by PPO, as the round trip grows from 40 to 400 ms",
            "20 Mbit/s, a queue of 1000 packets, one flow; the step comes after 11 s",
            fig2a,
        ),
        (
            "fig2b",
            "The kernel's BBR, vanilla and tuned by PPO, as the link falls from 20 to 5 Mbit/s",
            "A base RTT of 40 ms, a queue of 1000 packets, one flow; the step comes after 3 s",
            fig2b,
        ),
        (
            "fig4",
            "Five flows of the kernel's BBR join and leave, vanilla and tuned by PPO",
            "10 Mbit/s, a base RTT of 50 ms, a queue of 1000 packets",
            fig4,
        ),
    )
)
