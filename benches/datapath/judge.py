"""Compares the measured figures with their targets."""

from collections.abc import Iterator, Sequence
from typing import Any

from datapath import spread

Figures = dict[str, Any]

RULE = """\
The median decides the verdict, because the issue asks for medians of alternating runs. If the target lies within
the 95% interval, a note says so: another measurement may decide otherwise. The target of hooks is for Headway's
part: the time of all programs for an acknowledgement, without the counting and without the time of the same program
without an agent (Cubic's own functions, and the entry). The sum of both parts is in brackets. Cubic's functions are
called less often if a policy controls the flow, so Headway's part is at least as long. It is the median over the
rounds of the difference within a round, with an interval of the same bootstrap.
"""
PATHS = {"tso": "packets as TSO makes them", "mtu": "packets of 1500 bytes"}
"""The unshaped paths, with the packets that cross them."""
COST = (
    ("throughput", "mbps_ratio", "at least", 0.97),
    ("CPU a GB", "cpu_s_per_gb_ratio", "at most", 1.03),
)
MOST_OF_ACK_NS = 300
"""The target for Headway's part of an acknowledgement that leaves a record, with a policy that
decides."""
LATEST = 1.05
"""The time between a flow's decisions may be this multiple of the period of its clock."""
LEAST_TOLD = 0.95
"""The smallest share of acknowledgements that leave a record. The target is for one record each."""
MOST_RATE = 1.25
"""A row is compared with its base only if the ratio of their acknowledgement rates is at most
this."""
DECISIONS_A_SECOND = 100_000
"""The decisions a second of 1,000 flows that decide every 10 ms."""


def targets(figures: Figures) -> list[Figures]:
    """Yields each target with its figure.

    A row has name, value, target, sense ("at least" or "at most"), verdict, met, note. A verdict is
    met, missed, or void. Void means that the target does not apply to the measurement.
    """
    return [
        *_of_cost(figures),
        *_of_hooks(figures),
        *_of_latency(figures),
        *_of_flows(figures),
        *_of_int8(figures),
    ]


def _target(name: str, value: float, sense: str, limit: float, note: str = "", void: str = "") -> Figures:
    is_met = value >= limit if sense == "at least" else value <= limit
    verdict = "void" if void else "met" if is_met else "missed"
    known = {"name": name, "value": value, "sense": sense, "target": limit, "note": void or note}
    return known | {"verdict": verdict, "met": verdict == "met"}


def _of_cost(figures: Figures) -> Iterator[Figures]:
    known = figures.get("variants", {})
    for path, variants in figures.get("cost", {"paths": {}})["paths"].items():
        for name, of_name in variants.items():
            variant = known[name]
            if not variant["is_held"]:
                continue
            void = ""
            if "--policy" in variant["options"] and not of_name["decisions"]:
                void = "the policy was not asked"
            elif of_name.get("guard_trips"):
                void = "the guard gave the flow to Cubic"
            over = known[variant["over"]]["title"].removeprefix("the kernel's ")
            for what, key, sense, limit in COST:
                note = _interval(of_name[key]["ci95"], limit, "{:.2f}")
                title = f"{what} over {over}'s: {variant['title']}, {PATHS[path]}"
                yield _target(title, of_name[key]["median"], sense, limit, note, void)


def _of_hooks(figures: Figures) -> Iterator[Figures]:
    for row in figures.get("hooks", []):
        variant = figures["variants"][row["variant"]]
        title = f"{variant['title']}, {row['path']}"
        if variant["is_held"]:
            base, own = base_of(figures, row), own_ns(figures, row)
            parts = [] if base is None else [f"{run_ns(row):.0f} with {run_ns(base):.0f} of the base controller"]
            note = ", ".join(filter(None, [_interval(own["ci95"], MOST_OF_ACK_NS, "{:.0f}"), *parts]))
            yield _target(
                f"Headway's ns of an ACK: {title}",
                own["median"],
                "at most",
                MOST_OF_ACK_NS,
                note,
                _void_of_hook(variant, row, base),
            )
        elif row["variant"] == "int8":
            yield _target(f"ns an ACK: {title}", run_ns(row), "at most", 2500, "Cubic's functions, guard and all")


def _interval(ci95: Sequence[float] | None, limit: float, form: str) -> str:
    """The interval as text, with a note if the limit lies within it."""
    if not ci95:
        return ""
    low, high = ci95
    within = ": the target is within" if low < limit < high else ""
    return f"{form.format(low)} .. {form.format(high)}{within}"


def _void_of_hook(variant: Figures, row: Figures, base: Figures | None) -> str:
    """The reason why a row does not measure an acknowledgement with record, action and guard.

    It is "" if the row does measure one.
    """
    if "--shadow" in variant["options"]:
        return "without the guard's part: a shadow's does not judge"
    if row["guard_trips_a_second"]:
        return "the guard gave the flow to Cubic"
    told = row["reports_a_second"] / row["acks_a_second"]
    if told < LEAST_TOLD:
        return f"records of {told:.0%} of the acknowledgements"
    if base is None:
        return "the base controller was not measured"
    rate = row["acks_a_second"] / base["acks_a_second"]
    if not 1 / MOST_RATE <= rate <= MOST_RATE:
        return f"{rate:.2f} times the base controller's acknowledgements, so caches differ"
    return "the base controller alone took as long" if run_ns(row) <= run_ns(base) else ""


def _of_latency(figures: Figures) -> Iterator[Figures]:
    for row in figures.get("latency", []):
        for quantile, limit in (("p50", 30), ("p99", 100)):
            title = f"us from an ACK to Owl's action, {quantile}, {row['net']}, {row['path']}, {row['wait']}"
            yield _target(title, row[quantile], "at most", limit)


def _of_flows(figures: Figures) -> Iterator[Figures]:
    for row in figures.get("flows", []):
        if row["period_ms"] and row["policy"].startswith("Aurora"):
            apart = row["decisions_a_flow_ms"]
            note = f"{row['served']:,.0f} flows decided every {apart:.1f} ms"
            # An agent that decides less often than it should needs less time.
            is_due = apart <= LATEST * row["period_ms"] and row["served"] >= row["flows"]
            title = f"cores for {row['flows']:,} flows, {row['policy']}"
            yield _target(title, row["agent_cores"], "at most", 0.5, note, "" if is_due else note)


def _of_int8(figures: Figures) -> Iterator[Figures]:
    if figures.get("int8"):
        title = "ns a decision of int8 Aurora, BPF_PROG_TEST_RUN"
        yield _target(title, figures["int8"]["agent_ns"], "at most", 2500)


def run_ns(row: Figures) -> float:
    """The time of all programs that run for an acknowledgement, without the time of counting."""
    return float(row["ns_an_ack"] - row["counting_ns"])


def own_ns(figures: Figures, row: Figures) -> Figures:
    """Headway's own time for an acknowledgement, without counting and without the base program.

    It is the median over rounds of the difference within a round, with its interval.

    Args:
        figures: All figures.
        row: A row of the stage `hooks`.
    """
    base = base_of(figures, row)
    bases = base["of_rounds"] if base else [0.0] * len(row["of_rounds"])
    return spread.of_rounds([of_row - of_base for of_row, of_base in zip(row["of_rounds"], bases, strict=True)])


def base_of(figures: Figures, row: Figures) -> Figures | None:
    """The row of the same program without an agent, or None if it was not measured."""
    name = figures["variants"][row["variant"]]["base"] or row["variant"]
    same = (r for r in figures["hooks"] if (r["path"], r["variant"]) == (row["path"], name))
    return next(same, None)
