"""Section VII-A: three operators' LTE behind seven switches, of which a fifth is known. Figures 4 and 5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway._native import Scenario
from headway.report.scatter import SMALL, side_by_side, throughput_against_delay
from headway.reproduce.charts import looks_of, over_time, titled
from headway.reproduce.claim import MORE, any_of, each_within, so_many, text_of, verdict
from headway.reproduce.figure import Drawn, Figure
from headway.reproduce.owl.contenders import END_TO_END, IN_NETWORK, MEDIA, online

if TYPE_CHECKING:
    from headway.report.series import Line
    from headway.reproduce.claim import Claim
    from headway.reproduce.figure import Made
    from headway.reproduce.lab import Lab, Wanted
    from headway.reproduce.measured import Measured
    from headway.runs.store import Run
    from headway.summary import Metric

OPERATORS = {"Verizon": "owl-lte-verizon", "T-Mobile": "owl-lte-tmobile", "AT&T": "owl-lte-att"}
RIVALS = {"end-to-end": END_TO_END, "others": (*MEDIA, *IN_NETWORK)}
"""Those of real-time media and of the network are not held against Owl's utility and power."""

MOST_LOSS = 0.999
"""A larger loss counts as this, as it does in rewards: without its worst bins a scheme would look better."""


def fig4(lab: Lab) -> Made:
    """Throughput against p95 delay, a point a scheme, on each operator."""
    specs = {"owl": lab.scheme("owl")} | online(lab)
    specs |= lab.those(["owl-loss", *END_TO_END, *MEDIA, *IN_NETWORK])
    networks = {name: lab.each(specs, Scenario.load(scenario)) for name, scenario in OPERATORS.items()}
    measured = yield [one for network in networks.values() for one in network.values()]

    looks = looks_of(list(specs))
    charts, table = [], [["network", "scheme", *(title for title, _, _ in SHOWN)]]
    for name, network in networks.items():
        points = list(network.values())
        rows, regions = measured.rows(points), measured.regions(points)
        charts.append(throughput_against_delay(rows, looks, regions, name, SMALL))
        for label, one in network.items():
            cells = [" \u00b7 ".join(text_of(measured.mean(one, metric), unit)) for _, metric, unit in SHOWN]
            table.append([name, label, *cells])
    claims = [
        _undominated(name, network, measured, rivals) for rivals in RIVALS for name, network in networks.items()
    ]
    judged = [s for s in RIVALS["end-to-end"] if s in specs]
    claims += [_ahead(metric, rival, networks, measured) for metric in ("utility", "power") for rival in judged]
    if "owl-online" in specs:
        claims += [_learns(metric, networks, measured) for metric in ("utility", "power")]
    return Drawn(side_by_side(charts, "Throughput against p95 delay, 20% of the switches known"), claims, table)


SHOWN = (
    ("throughput", "throughput_mbps", "Mbit/s"),
    ("p95 delay", "delay_p95_ms", "ms"),
    ("loss", "loss", ""),
    ("power", "power", ""),
    ("utility (Eq. 7)", "utility", ""),
)


def _undominated(operator: str, network: dict[str, Wanted], measured: Measured, rivals: str) -> Claim:
    """That no scheme of those is ahead of Owl in both throughput and p95 delay."""
    owl = network["owl"]
    verdicts = {}
    for label in (s for s in RIVALS[rivals] if s in network):
        faster = verdict(measured.difference(owl, network[label], "throughput_mbps"), low=0)
        sooner = verdict(measured.difference(network[label], owl, "delay_p95_ms"), low=0)
        verdicts[label] = any_of([faster, sooner])
    return so_many(
        f"fig4.{operator.lower().replace('&', '')}.{rivals}",
        f"On {operator} no other scheme shows a better combined throughput and delay (VII-A): {rivals}",
        "schemes that are not ahead of Owl in both throughput and p95 delay; all wanted",
        verdicts,
    )


def _ahead(metric: str, rival: str, networks: dict[str, dict[str, Wanted]], measured: Measured) -> Claim:
    verdicts = {
        name: verdict(measured.difference(network["owl"], network[rival], metric), low=MORE)
        for name, network in networks.items()
    }
    named = {"utility": "utility (Eq. 7)", "power": "power (Eq. 12)"}[metric]
    return so_many(
        f"fig4.{metric}.{rival}",
        f"Owl has the highest performance trade-off on average: {named} above {rival}'s (caption of Fig. 4)",
        f"operators on which Owl's mean {metric} is higher, at least two of three wanted",
        verdicts,
        least=2,
    )


def _learns(metric: str, networks: dict[str, dict[str, Wanted]], measured: Measured) -> Claim:
    """That learning in use is worth it."""
    return each_within(
        f"fig4.online.{metric}",
        f"Ours: that Owl goes on learning while it runs (Algorithm 1, lines 11 and 12) raises {metric}",
        f"{metric}, Owl's that learns in use, with 1% of actions by chance, over the frozen one's, on each "
        "operator; above 0 wanted",
        {
            name: measured.percent(network["owl-online"], network["owl"], metric)
            for name, network in networks.items()
        },
        "%",
        low=MORE,
    )


def fig5(lab: Lab) -> Made:
    """Throughput over a minute of Verizon beside the capacity, and loss-only utility over two of AT&T."""
    rates = lab.each(
        {"owl": lab.scheme("owl")} | lab.those(["owl-loss", "cubic", "pcc-allegro"]),
        Scenario.load(OPERATORS["Verizon"]),
        seconds=60,
        series=True,
    )
    utilities = lab.each(
        {"owl-loss": lab.scheme("owl-loss")} | lab.those(["abc", "aurora", "cubic"]),
        Scenario.load(OPERATORS["AT&T"]),
        seconds=120,
        series=True,
    )
    measured = yield [*rates.values(), *utilities.values()]

    first = {label: measured.runs(one)[0]["series"] for label, one in rates.items()}
    capacity = _line(first["owl"], "capacity_mbps")
    looks = looks_of([*rates, *utilities])
    above = over_time(
        {label: _line(series, "throughput_mbps") for label, series in first.items()},
        looks,
        "throughput (Mbit/s)",
        capacity[-1][0],
        capacity,
    )
    of_loss = {label: _utilities(measured.runs(one)[0]) for label, one in utilities.items()}
    below = over_time(of_loss, looks, "utility, beta = 0", max(line[-1][0] for line in of_loss.values()))
    chart = titled(
        [("(a) Verizon: throughput, and the link's capacity in grey", above), ("(b) AT&T: utility", below)],
        looks,
        1,
    )
    closer: dict[str, Metric] = {
        rival: measured.difference(rates[rival], rates["owl"], _missed)
        for rival in ("cubic", "pcc-allegro")
        if rival in rates
    }
    queues = {"cubic": measured.percent(rates["owl"], rates["cubic"], "queue_p95_ms")} if "cubic" in rates else {}
    regular = {
        rival: measured.difference(utilities["owl-loss"], utilities[rival], _utility_over_time)
        for rival in utilities
        if rival != "owl-loss"
    }
    claims = [
        each_within(
            "fig5.follows",
            "Owl fits the link's rate best (Fig. 5a)",
            "mean |throughput - capacity| over bins of 500 ms, the other's less Owl's; above 0 wanted",
            closer,
            "Mbit/s",
            low=MORE,
        ),
        each_within(
            "fig5.queue",
            "Cubic overshoots, which leads to large standing queues (Fig. 5a)",
            "Owl's p95 queueing delay over Cubic's; below -50% wanted",
            queues,
            "%",
            high=-50,
        ),
        each_within(
            "fig5.utility",
            "Owl-Loss regularly gives a higher utility over time than ABC, Aurora and Cubic (Fig. 5b)",
            "mean over bins of 500 ms of Eq. 7 with delta = 0.5, beta = 0, Owl-Loss less the other; above 0 wanted",
            regular,
            low=MORE,
        ),
    ]
    return Drawn(chart, claims, notes=["The curves are those of the first run; claims are over all."])


def _line(series: dict[str, list[float | None]], column: str) -> Line:
    return [(t, v) for t, v in zip(series["time_s"], series[column], strict=True) if t is not None]


def _missed(run: Run) -> float | None:
    """Mbit/s by which a bin's throughput is off the capacity, in the mean."""
    series = run["series"]
    off = [
        abs((rate or 0.0) - capacity)
        for rate, capacity in zip(series["throughput_mbps"], series["capacity_mbps"], strict=True)
        if capacity is not None
    ]
    return sum(off) / len(off) if off else None


def _utilities(run: Run, delta: float = 0.5) -> Line:
    """Eq. 7 with beta = 0 in each bin."""
    series = run["series"]
    found: Line = []
    for t, rate, loss in zip(series["time_s"], series["throughput_mbps"], series["loss"], strict=True):
        arrived = 1 - min(loss or 0.0, MOST_LOSS)
        found.append((t, None if rate is None else rate - delta * rate / arrived))
    return found


def _utility_over_time(run: Run) -> float | None:
    values = [value for _, value in _utilities(run) if value is not None]
    return sum(values) / len(values) if values else None


FIGURES = (
    Figure(
        "fig4",
        "Throughput against p95 delay on three operators' LTE (a-c)",
        "Up and to the right is better; p95 one-way delay, propagation included. Seven switches of NSFNET, 1000 "
        "packets of queue, 20% known; 30 runs of 100 s at offsets of the seconds kept for evaluation.",
        fig4,
    ),
    Figure(
        "fig5",
        "Throughput against the link's capacity (a), and utility over time (b)",
        "60 s of Verizon's downlink and 120 s of AT&T's, in bins of 500 ms.",
        fig5,
    ),
)
