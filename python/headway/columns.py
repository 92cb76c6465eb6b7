"""A table that is stored by columns. Its rows are views that are made when they are read."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any] | Sequence[Any]
"""One value a row: numbers as an array, in which NaN means none; texts as a list."""

Typed = TypeVar("Typed", bound=Mapping[str, object])
"""The keys of a table's rows and their types: one of `headway.rows`."""


class Row(Mapping[str, object]):
    """A row, read by the names of its columns."""

    __slots__ = ("_at", "_columns")

    def __init__(self, columns: Mapping[str, Sequence[Any]], at: int) -> None:
        """Refers to the row of number `at`, from 0."""
        self._columns = columns
        self._at = at

    def __getitem__(self, name: str) -> object:
        value = self._columns[name][self._at]
        # Only NaN differs from itself.
        return value if value == value else None  # noqa: PLR0124

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


class Rows(Generic[Typed]):
    """The rows of a table in order. You can iterate over them several times.

    A row can be read as the dict that `Typed` declares. It is a `Row`, so it cannot be changed or
    merged.
    """

    def __init__(self, columns: Mapping[str, Column]) -> None:
        """Takes columns of one length."""
        self.columns = columns
        """The columns as they were given."""
        # A memoryview gives Python's own numbers, an array gives NumPy's.
        self._columns: dict[str, Sequence[Any]] = {
            name: column.data if isinstance(column, np.ndarray) else column for name, column in columns.items()
        }

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def __getitem__(self, at: int) -> Typed:
        return cast("Typed", Row(self._columns, at))

    def __iter__(self) -> Iterator[Typed]:
        return map(self.__getitem__, range(len(self)))


def listed(column: Column) -> list[Any]:
    """Returns the values of a column, with None where it has none."""
    values = column.tolist() if isinstance(column, np.ndarray) else column
    return [value if value == value else None for value in values]  # noqa: PLR0124
