"""What was to be reached, beside what is."""

from typing import Any

Figures = dict[str, Any]


def targets(figures: Figures) -> list[Figures]:
    """Each target beside its figure: name, value, target, sense ("at least" or "at most"), verdict, met, note.

    The verdict is met, missed, open where the interval has the target within it, or void.
    """
    found: list[Figures] = []

    def target(name: str, value: float, sense: str, limit: float, note: str = "", verdict: str = "") -> None:
        is_met = value >= limit if sense == "at least" else value <= limit
        verdict = verdict or ("met" if is_met else "missed")
        known = {"name": name, "value": value, "sense": sense, "target": limit, "note": note}
        found.append(known | {"verdict": verdict, "met": verdict == "met"})

    def ratio(name: str, of_name: Figures, key: str, sense: str, limit: float) -> None:
        low, high = of_name[key]["ci95"] or [of_name[key]["median"]] * 2
        verdict, note = "open" if low < limit < high else "", f"{low:.2f} .. {high:.2f}"
        if not of_name["decisions"]:
            verdict, note = "void", "the policy was asked nothing"
        target(name, of_name[key]["median"], sense, limit, note, verdict)

    for path, variants in figures.get("cost", {"paths": {}})["paths"].items():
        for name, of_name in variants.items():
            # What a policy decides is not what the datapath costs: shadows decide nothing, and one holds still.
            if name.endswith(("-shadow", "-still")):
                title = f"{figures['titles'][name]}, {PATHS[path]}"
                ratio(f"throughput over Cubic's: {title}", of_name, "mbps_ratio", "at least", 0.97)
                ratio(f"CPU a GB over Cubic's: {title}", of_name, "cpu_s_per_gb_ratio", "at most", 1.05)
    for row in figures.get("hooks", []):
        if row["path"].startswith("unshaped") and row["variant"] in HOOKED:
            title = f"ns an ACK: {figures['titles'][row['variant']]}, {row['path']}"
            note = f"{row['ns_an_ack']:.0f} with Cubic's functions and the counting"
            target(title, own_ns(figures["hooks"], row), "at most", 300, note)
        if row["variant"] == "int8" and row["path"] == "unshaped, 1500 bytes":
            target("ns an ACK: int8 Aurora on live flows", row["ns_an_ack"], "at most", 2500)
    for row in figures.get("latency", []):
        for quantile, limit in (("p50", 30), ("p99", 100)):
            title = f"us from an ACK to Owl's action, {quantile}, {row['path']}, {row['wait']}"
            target(title, row[quantile], "at most", limit)
    for row in figures.get("flows", []):
        if row["policy"] == "Aurora asked":
            title = f"cores for {row['flows']:,} flows with Aurora, a flow's decisions apart by"
            target(f"{title} {row['decisions_a_flow_ms']:.1f} ms", row["agent_cores"], "at most", 0.5)
            # What 1,000 flows would take that decide every 10 ms, whether this path let them or not.
            target("cores for 100,000 decisions a second, by Aurora's", row["us_a_decision"] * 0.1, "at most", 0.5)
    if figures.get("int8"):
        target("ns a decision of int8 Aurora in BPF", figures["int8"]["agent_ns"], "at most", 2500)
    return found


def own_ns(hooks: list[Figures], row: Figures) -> float:
    """What a program takes an ACK beyond its counting, and beyond what it takes where nobody is told of it.

    Args:
        hooks: All rows.
        row: One of them.
    """
    return float(row["ns_an_ack"] - row["counting_ns"] - (cubics_ns(hooks, row) or 0.0))


def cubics_ns(hooks: list[Figures], row: Figures) -> float | None:
    """What the program takes an ACK without an agent, beyond its counting; None where nobody measured it."""
    name = f"{'owl' if row['variant'].startswith('owl') else 'rate'}-no-agent"
    found = [r["ns_an_ack"] - r["counting_ns"] for r in hooks if (r["path"], r["variant"]) == (row["path"], name)]
    return found[0] if found else None


HOOKED = ("owl-shadow", "owl-shadow-awake", "owl-still", "aurora-shadow", "aurora-shadow-awake")
PATHS = {"tso": "packets as TSO makes them", "mtu": "packets of 1500 bytes"}
"""The unshaped paths, by what crosses them."""
