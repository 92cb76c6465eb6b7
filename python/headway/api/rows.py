"""The rows of tables: the keys of each, with types and units. At run time a row is a plain dict.

Rates are in Mbit/s, delays in ms, times in s, loss and utilisation shares from 0 to 1. `low` and
`high` are the ends of a 95% interval. None stands where there is no value.
"""

from headway.rows import (
    ClaimRow,
    DifferenceRow,
    GapRow,
    LevelRow,
    LogRow,
    MeanRow,
    ModelRow,
    RunRow,
    ScenarioRow,
    SchemeRow,
    SeriesRow,
    ShadowRow,
    Sweep,
    TraceRow,
    TrialDifferenceRow,
    TrialMeanRow,
    ValidationRow,
    columns,
    kinds,
)

__all__ = [
    "ClaimRow",
    "DifferenceRow",
    "GapRow",
    "LevelRow",
    "LogRow",
    "MeanRow",
    "ModelRow",
    "RunRow",
    "ScenarioRow",
    "SchemeRow",
    "SeriesRow",
    "ShadowRow",
    "Sweep",
    "TraceRow",
    "TrialDifferenceRow",
    "TrialMeanRow",
    "ValidationRow",
    "columns",
    "kinds",
]
