"""What was to be reached, beside what is."""

from typing import Any

from datapath.many import PERIOD_MS

Figures = dict[str, Any]

RULE = """\
The verdict is the median's: the issue asks for medians of alternating runs. Where the interval of 95% has the
target within it, it says so: another measurement may decide otherwise.
"""
PATHS = {"tso": "packets as TSO makes them", "mtu": "packets of 1500 bytes"}
"""The unshaped paths, by what crosses them."""
LATEST = 1.05
"""So much longer than its clock says may pass between decisions of a flow."""
DECISIONS_A_SECOND = 100_000
"""Of 1,000 flows that decide every 10 ms."""


def targets(figures: Figures) -> list[Figures]:
    """Each target beside its figure: name, value, target, sense ("at least" or "at most"), verdict, met, note."""
    found: list[Figures] = []

    def target(name: str, value: float, sense: str, limit: float, note: str = "", verdict: str = "") -> None:
        is_met = value >= limit if sense == "at least" else value <= limit
        verdict = verdict or ("met" if is_met else "missed")
        known = {"name": name, "value": value, "sense": sense, "target": limit, "note": note}
        found.append(known | {"verdict": verdict, "met": verdict == "met"})

    def ratio(name: str, of_name: Figures, key: str, sense: str, limit: float, is_served: bool) -> None:
        verdict, note = "", ""
        if of_name[key]["ci95"]:
            low, high = of_name[key]["ci95"]
            note = f"{low:.2f} .. {high:.2f}" + (": the target is within" if low < limit < high else "")
        if is_served and not of_name["decisions"]:
            verdict, note = "void", "the policy was asked nothing"
        target(name, of_name[key]["median"], sense, limit, note, verdict)

    known = figures.get("variants", {})
    for path, variants in figures.get("cost", {"paths": {}})["paths"].items():
        for name, of_name in variants.items():
            if known[name]["is_held"]:
                title, over = f"{known[name]['title']}, {PATHS[path]}", known[known[name]["over"]]["title"]
                is_asked = "--policy" in known[name]["options"]
                what = f"over {over.removeprefix('the ')}: {title}"
                ratio(f"throughput {what}", of_name, "mbps_ratio", "at least", 0.97, is_asked)
                ratio(f"CPU a GB {what}", of_name, "cpu_s_per_gb_ratio", "at most", 1.05, is_asked)
    for row in figures.get("hooks", []):
        variant = known[row["variant"]]
        title = f"ns an ACK: {variant['title']}, {row['path']}"
        if variant["is_held"]:
            note = f"{row['ns_an_ack']:.0f} with what is beneath and the counting"
            if "--shadow" in variant["options"]:
                note = f"without the guard's part: a shadow's does not judge; {note}"
            target(title, own_ns(figures, row), "at most", 300, note)
        elif row["variant"] == "int8":
            target(title, row["ns_an_ack"], "at most", 2500, "Cubic's functions, guard and all")
    for row in figures.get("latency", []):
        for quantile, limit in (("p50", 30), ("p99", 100)):
            title = f"us from an ACK to Owl's action, {quantile}, {row['net']}, {row['path']}, {row['wait']}"
            target(title, row[quantile], "at most", limit)
    for row in figures.get("flows", []):
        if row["period_ms"] == PERIOD_MS and row["policy"].startswith("Aurora"):
            apart = row["decisions_a_flow_ms"]
            title, verdict = f"cores for {row['flows']:,} flows, {row['policy']}", ""
            if apart > LATEST * PERIOD_MS or row["served"] < row["flows"]:
                # Who decides less often needs less for it.
                verdict = "void"
            note = f"{row['served']:,.0f} flows decided every {apart:.1f} ms"
            target(title, row["agent_cores"], "at most", 0.5, note, verdict)
    if figures.get("int8"):
        target("ns a decision of int8 Aurora, BPF_PROG_TEST_RUN", figures["int8"]["agent_ns"], "at most", 2500)
    return found


def own_ns(figures: Figures, row: Figures) -> float:
    """What a program takes an ACK beyond its counting, and beyond what it takes where nobody is told of it.

    Args:
        figures: All of them.
        row: One of those of the hooks.
    """
    return float(row["ns_an_ack"] - row["counting_ns"] - (beneath_ns(figures, row) or 0.0))


def beneath_ns(figures: Figures, row: Figures) -> float | None:
    """What the program takes an ACK without an agent, beyond its counting; None where nobody measured it."""
    name = figures["variants"][row["variant"]]["beneath"] or row["variant"]
    same = (r for r in figures["hooks"] if (r["path"], r["variant"]) == (row["path"], name))
    return next((r["ns_an_ack"] - r["counting_ns"] for r in same), None)
