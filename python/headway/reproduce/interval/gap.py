"""The paper's other wish, transports other than UDT.

The figure shows how far both agents are from the simulator there.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from headway._native import Scenario, UsageError
from headway.gap.chart import figure as chart_of
from headway.gap.compare import compare
from headway.gap.page import circumstances
from headway.gap.plan import EMU, KERNEL, Settings
from headway.gap.tables import pairs
from headway.reproduce.claim import text_of
from headway.reproduce.figure import Figure, FigureResult
from headway.reproduce.interval.beyond import LEARNED
from headway.reproduce.lab import MissingError
from headway.runs.store import NAME, Store
from headway.stats.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headway.gap.compare import Row, WorldGap
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.lab import Lab
    from headway.stats.means import Metric

AGENTS = {"interval": "interval (K)", LEARNED: LEARNED}
"""The figure's names of the agents: `interval` without parameters is 2 x jk."""
WORLDS = {EMU: "emulator", KERNEL: "kernel"}
GAP_NETWORKS = ("pantheon-default", "low-bdp", "cellular-walking")
SECONDS = 30.0
COMMAND = f"headway gap --schemes {','.join(AGENTS)} --scenario {','.join(GAP_NETWORKS)} --seconds {SECONDS:g}"
TABLE = "In real time: the gap to the simulator"
KEPT = Path("out") / "gap"
"""The folder in which `headway gap` keeps its runs. They take an hour, so the figure only reads
them."""


def gap(_lab: Lab) -> FigureJob:
    """Draws differences of pairs of runs that `headway gap` has kept."""
    rows = _rows(KEPT)
    if why := _missing(rows):
        raise MissingError(why)
    yield []
    rows = [row | {"scheme": AGENTS[row["scheme"]]} for row in rows]
    notes = [f"`{COMMAND}`.", *circumstances(rows)]
    return FigureResult(chart_of(rows), [], notes=notes, tables={TABLE: _table(rows)})


def _rows(folder: Path) -> list[Row]:
    """Returns the rows of `compare` for the runs of COMMAND, whatever other runs are there.

    Raises MissingError.
    """
    if not (folder / NAME).is_file():
        return []
    try:
        scenarios = [Scenario.load(name) for name in GAP_NETWORKS]
        with closing(Store(folder)) as store:
            return compare(scenarios, list(AGENTS), Settings(seconds=SECONDS), store.find)
    except UsageError as why:
        raise MissingError(f"the runs of headway gap cannot be read: {why}") from why


def _missing(rows: Sequence[Row]) -> str | None:
    """Says which pairs of runs are missing, and which command makes them.

    A part of the comparison must not pass for the whole.
    """
    found = {(row["scenario"], row["scheme"]): _worlds(row) for row in rows}
    wanted = [(network, agent, world) for network in GAP_NETWORKS for agent in AGENTS for world in WORLDS]
    kept = [found.get((network, agent), {}).get(world) for network, agent, world in wanted]
    missing = [(one, own) for one, own in zip(wanted, kept, strict=True) if not own or not own["pairs"]]
    if not missing:
        return None
    network, agent, world = missing[0][0]
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    again = " --again" if any(own for _, own in missing) else ""
    return f"no pairs of runs of {agent} on {network} in the {WORLDS[world]}{more}: `{COMMAND}{again}` makes them"


def _worlds(row: Row) -> dict[str, WorldGap | None]:
    return {EMU: row, KERNEL: row["kernel"]}


def _known(metric: Metric) -> Estimate:
    """Returns the pairs that `headway gap` has made so far."""
    ends = metric["ci95"]
    return Estimate.fixed(metric["mean"], (ends[0], ends[1]) if ends else None)


def _table(rows: Sequence[Row]) -> list[list[str]]:
    titles = ["network", "scheme", "world", "pairs", "throughput, sim (Mbit/s)", "gap (%)", "95% interval"]
    table = [[*titles, "p95 delay, sim (ms)", "gap (%)", "95% interval"]]
    for row in rows:
        for world, own in _worlds(row).items():
            if own:
                cells = [
                    cell
                    for gap in (own["throughput_mbps"], own["delay_p95_ms"])
                    for cell in (text_of(_known(gap["sim"]))[0], *text_of(_known(gap["percent"])))
                ]
                table.append([row["scenario"], row["scheme"], WORLDS[world], pairs(own), *cells])
    return table


FIGURES = (
    Figure(
        "gap",
        "How far real packets are from the simulator",
        "Difference of the emulator (real packets over our own UDP transport) and of the kernel "
        "(its TCP, controlled by headwayd) from the simulator, in % of the simulator's value. "
        "Runs of 30 s on three networks are paired by seed; `headway gap` keeps them in out/gap.",
        gap,
    ),
)
