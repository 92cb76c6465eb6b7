"""The measurements of a step."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from headway import _native
from headway._native import UsageError
from headway.text import nearest

COLUMNS: dict[str, str] = dict(_native.measurements())
"""Every column and its meaning. First come those that only a simulation knows (`dt_s`, `time_s`,
`throughput_packets_per_s`, `capacity_mbps`, `queue_packets`, `base_rtt_ms`, `path_mbps`,
`fair_mbps`), then each feature of docs/features.md without normalisation."""

_INDEX = {name: index for index, name in enumerate(COLUMNS)}

Array = np.ndarray[Any, np.dtype[np.float64]]


class Measurements:
    """The measurements of one step of several environments; units are in the names.

    `measurements["loss"]` is a column: an array of float64, one value for each environment.
    """

    def __init__(self, rows: Array) -> None:
        """Takes `rows`, one for each environment, with the `COLUMNS` in their order."""
        if rows.ndim != 2 or rows.shape[1] != len(COLUMNS):
            raise ValueError(f"rows have the shape {rows.shape}, must be (environments, {len(COLUMNS)})")
        self.rows = rows

    @classmethod
    def of(cls, **columns: float | list[float] | Array) -> Measurements:
        """Makes measurements from some columns by name; the others are zero.

        It is for tests and examples.
        """
        length = max((np.size(column) for column in columns.values()), default=1)
        rows = np.zeros((length, len(COLUMNS)))
        for name, column in columns.items():
            rows[:, _INDEX[name]] = column
        return cls(rows)

    def __getitem__(self, name: str) -> Array:
        """Returns a column. Raises UsageError for an unknown name."""
        if name not in _INDEX:
            raise UsageError(f"no column '{name}'{nearest(name, COLUMNS)}; headway.envs.COLUMNS has all")
        return self.rows[:, _INDEX[name]]

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def columns(self) -> dict[str, Array]:
        """Returns every column by its name: views of the rows."""
        return dict(zip(COLUMNS, self.rows.T, strict=True))

    def first_row(self) -> dict[str, float]:
        """Returns the measurements of the first environment, by name."""
        return dict(zip(COLUMNS, self.rows[0].tolist(), strict=True))
