"""Section III-A: several agents that learn by themselves.

They share everything, policies or nothing. The paper describes such agents and measures none. What
it does not say and was chosen, the network, how agents share, how long they train, is in
`headway.train.team_study`, whose lines this draws; it needs no PyTorch.
"""

from __future__ import annotations

import json
from statistics import fmean
from typing import TYPE_CHECKING

from headway._native import UsageError
from headway.report.lines import Axis, sweep
from headway.reproduce.charts import chosen, titled
from headway.reproduce.claim import PERCENT, judge, text_of
from headway.reproduce.figure import Figure, FigureResult
from headway.reproduce.lab import TRAINED, MissingError
from headway.stats.estimate import Estimate
from headway.stats.means import mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from headway.report.style import Style
    from headway.report.svg import Spec
    from headway.reproduce.claim import Claim
    from headway.reproduce.figure import FigureJob
    from headway.reproduce.lab import Lab
    from headway.train.team_study import StudyRow

NOTHING, POLICIES, EVERYTHING = "nothing", "policies", "everything"
LOOKS = {NOTHING: ("vermillion", "square"), POLICIES: ("green", "up"), EVERYTHING: ("blue", "circle")}
BEST = 0.95
"""A team has learned when it reaches this share of the best reward."""
QUANTITIES = {
    "reward": "team reward",
    "right": "share of time with a right RTprop",
    "utilisation": "utilisation",
    "jain": "Jain's index",
}
SCHEMA = 1

Setup = tuple[int, str]


STUDY = "bbr-team/runs.jsonl"
"""The study's file below the folder of trainings."""


def figure(lab: Lab) -> FigureJob:
    """Draws the study's lines, which come from trainings and not from runs.

    Raises MissingError if there are none.
    """
    file = (lab.models or TRAINED) / STUDY
    if not file.is_file():
        raise MissingError(f"no teams are trained here: python -m headway.train.team_study (an hour), for {file}")
    rows = read(file)
    yield []
    return agents(rows)


def read(file: Path) -> list[StudyRow]:
    """Reads a study's lines. Raises UsageError if the file cannot be read or has another schema."""
    try:
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError, json.JSONDecodeError):
        raise UsageError(f"{file}: cannot be read; make it with python -m headway.train.team_study") from None
    for row in rows:
        if not isinstance(row, dict) or row.get("schema") != SCHEMA:
            raise UsageError(f"{file}: a line without schema {SCHEMA}; train again into another --out")
    return rows


def agents(rows: Sequence[StudyRow]) -> FigureResult:
    """Makes the chart, the claims and the table from a study's lines.

    Raises UsageError if no team is trained.
    """
    setups = _setups(rows)
    if not setups:
        raise UsageError("the study has no trained team yet; let headway.train.team_study go on")
    best = max(fmean(point["reward"] for point in at) for runs in setups.values() for at in _points(runs))
    looks = chosen(LOOKS)
    panels: list[tuple[str, Spec]] = []
    for name, title in QUANTITIES.items():
        panels.append((title, _panel(setups, _last(name), title, looks)))
    panels.append((f"decisions to {BEST:.0%} of the best", _panel(setups, _needed_of(best), "decisions", looks)))
    plain = [row["curve"][0] for row in rows if row["agents"] == 0]
    table = [_titles(), *(_cells(setup, runs, best) for setup, runs in setups.items())]
    if plain:
        cells = [cell for name in QUANTITIES for cell in text_of(Estimate.exactly(plain[0][name]))]
        table.append(["none (BBR)", "", "", *cells, "", "", ""])
    late = sum(_needed(row, best) is None for runs in setups.values() for row in runs)
    notes = [
        "Intervals are over training seeds. With fewer than ten seeds they are Student's.",
        "All teams are measured in the same held-out episodes, with each policy's most probable actions.",
        f"A team that never reaches {BEST:.0%} of the best mean reward of any setup counts with "
        f"all decisions of its training, so those means are lower bounds. These are {late} of "
        f"{sum(map(len, setups.values()))} teams.",
    ]
    if versions := sorted({row["code_version"] for row in rows if "code_version" in row}):
        notes.append(f"The teams were trained by Headway {', '.join(versions)}.")
    return FigureResult(titled(panels, looks), _claims(setups), table, notes)


def _setups(rows: Sequence[StudyRow]) -> dict[Setup, list[StudyRow]]:
    """Returns trainings by the number of agents and what they share, ordered by seed.

    A training of one agent is in both.
    """
    found: dict[Setup, list[StudyRow]] = {}
    for row in sorted((row for row in rows if row["agents"]), key=lambda row: row["seed"]):
        found.setdefault((row["agents"], row["shared"]), []).append(row)
    order = list(LOOKS)
    return dict(sorted(found.items(), key=lambda item: (item[0][0], order.index(item[0][1]))))


def _points(runs: Sequence[StudyRow]) -> list[tuple[Mapping[str, float], ...]]:
    """Returns the measurements of all seeds of a setup, for each point of measurement."""
    return list(zip(*(row["curve"] for row in runs), strict=False))


def _needed(row: StudyRow, best: float) -> float | None:
    return next((point["decisions"] for point in row["curve"] if point["reward"] >= BEST * best), None)


def _needed_of(best: float) -> Callable[[StudyRow], float]:
    def needed(row: StudyRow) -> float:
        found = _needed(row, best)
        return row["curve"][-1]["decisions"] if found is None else found

    return needed


def _last(name: str) -> Callable[[StudyRow], float]:
    return lambda row: float(row["curve"][-1][name])


def _panel(
    setups: Mapping[Setup, list[StudyRow]], of: Callable[[StudyRow], float], title: str, looks: Mapping[str, Style]
) -> Spec:
    lines = []
    for shared, look in looks.items():
        points = []
        for (count, how), runs in setups.items():
            if how == shared or count == 1:
                metric = _mean([of(row) for row in runs])
                middle = metric.mean or 0.0
                low, high = metric.ci95 or (middle, middle)
                points.append((float(count), middle, low, high))
        lines.append((look, points))
    highs = [high for _, points in lines for *_, high in points]
    return sweep(lines, Axis("agents", 0.5, 8.5), Axis.over(title, [0.0, *highs]))


def _titles() -> list[str]:
    quantities = [cell for title in QUANTITIES.values() for cell in (title, "95% interval")]
    return ["agents", "shared", "seeds", *quantities, f"decisions to {BEST:.0%}", "95% interval", "never reached"]


def _cells(setup: Setup, runs: Sequence[StudyRow], best: float) -> list[str]:
    count, shared = setup
    metrics = [_mean([row["curve"][-1][name] for row in runs]) for name in QUANTITIES]
    metrics.append(_mean([_needed_of(best)(row) for row in runs]))
    cells = [cell for metric in metrics for cell in text_of(metric)]
    never = sum(_needed(row, best) is None for row in runs)
    return [str(count), "nobody to share with" if count == 1 else shared, str(len(runs)), *cells, str(never)]


def _difference(setups: Mapping[Setup, list[StudyRow]], one: Setup, other: Setup) -> Estimate:
    """Returns by how many percent the first's final team reward is above the second's.

    Pairs have the same seed.
    """
    left, right = (
        {row["seed"]: row["curve"][-1]["reward"] for row in setups.get(setup, [])} for setup in (one, other)
    )
    seeds = sorted(left.keys() & right.keys())
    return _mean([100.0 * (left[seed] / right[seed] - 1.0) for seed in seeds])


def _mean(values: Sequence[float]) -> Estimate:
    """Returns the mean over training seeds."""
    return Estimate.of(lambda level: mean(values, level=level), values)


def _claims(setups: Mapping[Setup, list[StudyRow]]) -> list[Claim]:
    counts = sorted({count for count, _ in setups if count > 1})
    if not counts:
        return []
    return [
        judge(
            "agents.sharing",
            "Agents share sensation, episodes and policies, and work for a common goal (III-A; no number)",
            "difference of the team reward with everything shared from that with nothing shared, "
            "in % of the latter, same seeds; threshold: above 0%",
            {f"{n} agents": _difference(setups, (n, EVERYTHING), (n, NOTHING)) for n in counts},
            "%",
            more=PERCENT,
            of="team reward",
        ),
        judge(
            "agents.episodes",
            "Ours: ... and sharing everything is better than sharing only policies",
            "difference of the team reward with everything shared from that with only policies "
            "shared, in % of the latter, same seeds; threshold: above 0%",
            {f"{n} agents": _difference(setups, (n, EVERYTHING), (n, POLICIES)) for n in counts},
            "%",
            more=PERCENT,
            of="team reward",
        ),
        judge(
            "agents.scale",
            "The number of agents depends on the network's scale and is not fixed (III-A; no number)",
            "difference of the team reward of several agents that share everything from one "
            "agent's, in % of the latter, with the same number of decisions and steps; threshold: "
            "at least -5%",
            {f"{n} agents": _difference(setups, (n, EVERYTHING), (1, NOTHING)) for n in counts},
            "%",
            low=-5.0,
            of="team reward",
        ),
    ]


FIGURES = (
    Figure(
        "agents",
        "One, two, four and eight agents that learn by themselves, and what comes of sharing",
        "Eight flows share one link. Agent i modulo N tunes flow i. Each setup has five trainings "
        "of 24 updates. All quantities are measured in held-out episodes. *Policies*: the agents "
        "average their policies after each update. *Everything*: they also share observations, "
        "episodes and value functions. `python -m headway.train.team_study` trained them; the "
        "lines of these trainings are in [bbr-tuning-agents.jsonl](bbr-tuning-agents.jsonl).",
        figure,
    ),
)
