"""Writes the figures as tables, and compares them with their targets.

The tables are for the terminal and for docs/performance.md.
"""

from typing import NamedTuple

from rounds import Figures

TOPOLOGIES = {
    "0": "sender = receiver",
    "1": "sender - router = receiver",
    "2": "sender - router = router - receiver",
}
"""Titles by the routers in ns-3's topology, where = is the bottleneck."""


EXPENSIVE = ("sprout", "verus")
"""Schemes that infer or fit a model of the link. They may cost more for it."""
LIMITS = {False: ("every scheme but Sprout and Verus", 2.0), True: ("Sprout and Verus", 10.0)}
"""The largest cost of a packet relative to Cubic's, by whether a scheme is expensive."""


class Table(NamedTuple):
    """A table: its title, its columns and the text of each cell."""

    title: str
    columns: list[str]
    rows: list[list[str]]


def judge(figures: Figures) -> list[Figures]:
    """Each target with its figure.

    A row has name, value, target, sense ("at least" or "at most"), met, note.
    """
    found = []

    def target(name: str, value: float, sense: str, limit: float, note: str = "") -> None:
        met = value >= limit if sense == "at least" else value <= limit
        found.append({"name": name, "value": value, "sense": sense, "target": limit, "met": met, "note": note})

    for routers, ratio in figures["speed"].get("ratio", {}).items():
        target(f"times stock ns-3, {TOPOLOGIES[routers]}", ratio["median"], "at least", 300)
    for is_expensive, (title, limit) in LIMITS.items():
        worst = max(
            (s for s in figures["schemes"] if (s["scheme"] in EXPENSIVE) == is_expensive),
            key=lambda s: s["ratio"]["median"],
        )
        target(f"time a packet over Cubic's, {title}", worst["ratio"]["median"], "at most", limit, worst["scheme"])
    if "instructions" in figures:
        target("instructions a packet, NewReno", figures["instructions"]["newreno"]["total"], "at most", 1200)
    for curve, of in (("flows", "1 to 1,000 flows"), ("seconds", "1 to 600 simulated seconds")):
        times = [point["ns_a_packet"]["median"] for point in figures[curve]]
        target(f"time a packet, {of}, most over least expensive", max(times) / min(times), "at most", 1.3)
        sizes = [point["bytes_a_packet"] for point in figures[curve]]
        target(f"memory a packet, {of}, most over least expensive", max(sizes) / min(sizes), "at most", 1.3)
    given = figures["cores"]["cores_given"]["median"]
    # Below the target even a perfect batch could not meet it.
    note = f"the machine gave {given:.2f} cores" if given < 1.8 else ""
    target("a batch on two cores, times one", figures["cores"]["ratio"]["median"], "at least", 1.8, note)
    for net, limit in zip(figures.get("inference", []), (1, 10), strict=False):
        ours = min(us["median"] for who, us in net["us"].items() if who.startswith("Headway"))
        target(f"us an answer of {net['net']}", ours, "at most", limit)
    for link in figures.get("emulator", {"links": []})["links"]:
        if link["link"] == "100 Mbit/s, 20 ms":
            target("delay error p50 at 100 Mbit/s, us", link["delay_error_us_p50"]["median"], "at most", 50)
            target("delay error p99 at 100 Mbit/s, us", link["delay_error_us_p99"]["median"], "at most", 500)
        elif link["link"] == "1 Gbit/s, 2 ms":
            target("Mbit/s of 1 Gbit/s emulated", link["rate_mbps"]["median"], "at least", 950)
            target("CPU s a GB at 1 Gbit/s emulated", link["cpu_s_per_gb"]["median"], "at most", 9)
    return found


def targets(figures: Figures) -> Table:
    """The table of the targets."""
    rows = [
        [t["name"], _number(t["value"]), f"{t['sense']} {t['target']:g}", _verdict(t)] for t in figures["targets"]
    ]
    return Table("Targets", ["what", "measured", "target", ""], rows)


def _verdict(target: Figures) -> str:
    verdict = "met" if target["met"] else f"**{target.get('verdict', 'missed')}**"
    return verdict + (f" ({target['note']})" if target["note"] else "")


def speed(figures: Figures) -> Table:
    """The table of packets in a CPU second, and of the ratio to ns-3's."""
    found = figures["speed"]
    rows = [["Headway", _thousands(found["headway"]), ""]]
    rows += [
        [f"ns-3, {TOPOLOGIES[routers]}", _thousands(rate), _spread(found["ratio"][routers])]
        for routers, rate in found.get("ns3", {}).items()
    ]
    return Table(
        "Compared with ns-3: NewReno on Rax's link",
        ["simulator", "thousand packets a CPU second", "Headway, times"],
        rows,
    )


def accuracy(figures: Figures) -> Table:
    """A row for each source: the number of figures checked against it, and the one furthest off."""
    found = figures["accuracy"]
    sources: dict[str, list[Figures]] = {}
    for check in found["checks"]:
        sources.setdefault(check["source"], []).append(check)
    rows = []
    for source, of_source in sorted(sources.items()):
        worst = max(of_source, key=lambda check: abs(check["off"]))
        missed = sum(bool(check["missed"]) for check in of_source)
        verdict = f"**{missed} of {len(of_source)} missed**" if missed else f"{len(of_source)} met"
        outside = f"{worst['outside']} {worst['unit']}".strip()
        rows.append([source, f"{worst['scheme']}: {worst['what']}", outside, f"{worst['ours']:.4g}", verdict])
    for name, suite in found["suites"].items():
        verdict = f"{suite['passed']} tests passed" if suite["met"] else "**failed**"
        rows.append([name, "", "", "", verdict])
    return Table("Accuracy", ["against", "furthest of them", "outside", "ours", ""], rows)


def schemes(figures: Figures) -> Table:
    """The table of time and instructions for a packet of every scheme, compared with Cubic's."""
    counts = figures.get("instructions", {})
    rows = []
    for found in figures["schemes"]:
        name, ratio = found["scheme"], found["ratio"]
        limit = LIMITS[name in EXPENSIVE][1]
        count = counts.get(name)
        rows.append(
            [
                name,
                _spread(ratio),
                f"{limit:g}" if ratio["median"] <= limit else f"{limit:g}: **missed**",
                _number(count["total"]) if count else "",
                _number(count["total"] / counts["cubic"]["total"]) if count else "",
                _number(count["parts"].get("controller", 0)) if count else "",
                f"{found['utilisation']:.2f}",
            ]
        )
    columns = [
        "scheme",
        "CPU time over Cubic's",
        "at most",
        "instructions",
        "over Cubic's",
        "of them the controller's",
        "utilisation",
    ]
    return Table("Every scheme: a delivered packet on Rax's link", columns, rows)


def instructions(figures: Figures) -> Table:
    """The table of instructions for a packet by part, with a row for each scheme."""
    found = figures["instructions"]
    parts = sorted(found["newreno"]["parts"], key=lambda part: -found["newreno"]["parts"][part])
    rows = [
        [scheme, *(f"{f['parts'].get(part, 0):.0f}" for part in parts), f"**{f['total']:.0f}**"]
        for scheme, f in found.items()
    ]
    return Table("Instructions a delivered packet", ["scheme", *parts, "all"], rows)


def flows(figures: Figures) -> Table:
    """The table of time and memory for a packet over flows."""
    return _curve(figures["flows"], "flows", "From 1 to 1,000 flows")


def seconds(figures: Figures) -> Table:
    """The table of time and memory for a packet over simulated seconds."""
    return _curve(figures["seconds"], "seconds", "From 1 to 600 simulated seconds")


def cores(figures: Figures) -> Table:
    """The table of one core and two."""
    found = figures["cores"]
    rows = [
        ["wall time, one job, s", _spread(found["one_s"])],
        ["wall time, two jobs, s", _spread(found["two_s"])],
        ["wall time, one job over two", _spread(found["ratio"])],
        ["cores that the machine gave to two jobs", _spread(found["cores_given"])],
        ["CPU time, two jobs over one", _spread(found["cpu_ratio"])],
    ]
    return Table("A batch of 80 runs of 60 s", ["", "median (lowest .. highest)"], rows)


def emulator(figures: Figures) -> Table:
    """The table of the cost and the lateness of real packets, with a row for each link."""
    rows = [
        [
            found["link"],
            _spread(found["rate_mbps"]) if found["rate_mbps"]["median"] else "",
            _spread(found["cpu_s_per_gb"]) if found["rate_mbps"]["median"] else "",
            _spread(found["cpu_share"]),
            *(_spread(found[f"{error}_{p}"]) for error in ("delay_error_us", "late_us") for p in ("p50", "p99")),
        ]
        for found in figures["emulator"]["links"]
    ]
    columns = [
        "link",
        "Mbit/s on the wire",
        "CPU s a GB",
        "cores",
        "delay error p50, us",
        "p99",
        "lateness p50, us",
        "p99",
    ]
    return Table("The emulator: a kernel Cubic flow over real packets", columns, rows)


def inference(figures: Figures) -> Table:
    """The table of the microseconds of an answer of each network.

    Ours are given by instruction set, and those of others relative to our best.
    """
    rows = []
    for net in figures["inference"]:
        for who, us in net["us"].items():
            ratio = _spread(net["ratio"][who]) if who in net["ratio"] else ""
            off = f"{net['off'][who]:.1e}" if who in net["off"] else ""
            rows.append([net["net"], who, _spread(us), ratio, off])
    columns = ["network", "by", "us", "over Headway's best", "outputs apart by"]
    return Table("One answer of a network, on one core", columns, rows)


def every(figures: Figures) -> dict[str, Table]:
    """All tables that these figures fill, by name."""
    makers = (accuracy, speed, schemes, instructions, flows, seconds, cores, inference, emulator, targets)
    return {make.__name__: make(figures) for make in makers if make is targets or make.__name__ in figures}


def show(figures: Figures) -> None:
    """Prints every table, then what was left out and which targets were missed."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as Drawn

    console = Console(width=None if Console().is_terminal else 130, highlight=False)
    for table in every(figures).values():
        drawn = Drawn(title=table.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
        for number, column in enumerate(table.columns):
            drawn.add_column(column, justify="right" if number else "left")
        for row in table.rows:
            drawn.add_row(*(cell.replace("**", "") for cell in row))
        console.print(drawn)
    console.print(about(figures))
    for line in [*figures["skipped"], *figures.get("accuracy", {}).get("skipped", [])]:
        console.print(f"skipped {line}")
    missed = [t["name"] for t in figures["targets"] if not t["met"]]
    missed += [f"{c['scheme']}: {c['what']}" for c in figures.get("accuracy", {}).get("checks", []) if c["missed"]]
    console.print(f"missed: {'; '.join(missed)}" if missed else "every target is met")


def markdown(table: Table) -> str:
    """The table in Markdown."""
    lines = [table.columns, ["---", *["--:"] * (len(table.columns) - 1)], *table.rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def about(figures: Figures) -> str:
    """One line with the machine, the commit and the date."""
    m = figures["machine"]
    return (
        f"Headway {m['version']} on {m['date']}, {m['cores']} cores of {m['cpu']}, load {m['load']} before the run."
    )


def _curve(points: list[Figures], x: str, title: str) -> Table:
    cheapest = min(point["ns_a_packet"]["median"] for point in points)
    smallest = min(point["bytes_a_packet"] for point in points)
    rows = [
        [
            f"{point[x]:,}",
            _spread(point["ns_a_packet"]),
            f"{point['ns_a_packet']['median'] / cheapest:.2f}",
            f"{point['peak_bytes'] / 2**20:.2f}",
            f"{point['bytes_a_packet']:.0f}",
            f"{point['bytes_a_packet'] / smallest:.2f}",
        ]
        for point in points
    ]
    columns = [x, "ns a packet", "over the cheapest", "peak MiB", "bytes a packet in flight", "over the smallest"]
    return Table(title, columns, rows)


def _spread(values: Figures) -> str:
    return f"{_number(values['median'])} ({_number(values['lowest'])} .. {_number(values['highest'])})"


def _thousands(values: Figures) -> str:
    return _spread({key: value / 1000 for key, value in values.items()})


def _number(value: float) -> str:
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}"
