"""A table that prints, and goes to pandas and Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from headway.api.errors import Error
from headway.columns import Rows, listed

if TYPE_CHECKING:
    from headway.columns import Column

Row = TypeVar("Row", bound=Mapping[str, object])
"""The keys of a row and their types: one of `headway.api.rows`."""

MOST_PRINTED = 100
"""Number of rows that are printed; a line says how many more the table has."""


class Table(Sequence[Row], Generic[Row]):
    """Rows with named columns. It prints as text. A row is a dict, with None for no value.

    `headway.api.rows` has the keys of each table's rows, with their types.

    Example:
        >>> slow = [row["scheme"] for row in results.table() if row["delay_p95_ms"] > 100]
    """

    def __init__(
        self,
        columns: Mapping[str, Column],
        kinds: Mapping[str, str] | None = None,
        shown: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Takes columns of one length.

        Args:
            columns: By name.
            kinds: The kind of each column, as `headway.fields.Field` has it.
            shown: The columns to print, by heading. Default: every column.
        """
        self._columns = dict(columns)
        self._kinds = kinds or {}
        self._shown = shown
        self._rows: Rows[Row] = Rows(self._columns)

    @property
    def columns(self) -> dict[str, list[Any]]:
        """Returns the values of each column, by its name."""
        return {name: listed(column) for name, column in self._columns.items()}

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return [self[at] for at in range(len(self))[index]]
        return cast("Row", dict(self._rows[range(len(self))[index]]))

    def to_pandas(self) -> Any:
        """Returns a pandas DataFrame: NaN for a missing number, None for a missing text or list.

        Raises:
            Error: pandas is not installed.
        """
        import numpy as np

        def typed(name: str, column: Column) -> Any:
            kind = self._kinds.get(name, "text").removesuffix("?")
            return listed(column) if kind == "text" else np.asarray(column, dtype=kind)

        columns = {name: typed(name, column) for name, column in self._columns.items()}
        return need("pandas").DataFrame(columns)

    def to_arrow(self) -> Any:
        """Returns a pyarrow Table: null for a missing value.

        Raises:
            Error: pyarrow is not installed.
        """
        arrow = need("pyarrow")
        fields, arrays = [], []
        for name, column in self._columns.items():
            kind = self._kinds.get(name)
            named = (kind or "").removesuffix("?").replace("text", "string")
            arrays.append(arrow.array(listed(column), getattr(arrow, named)() if kind else None))
            may_miss = kind is None or kind.endswith("?")
            fields.append(arrow.field(name, arrays[-1].type, nullable=may_miss))
        return arrow.table(arrays, schema=arrow.schema(fields))

    def __str__(self) -> str:
        shown = self._shown or {name: list(map(text_of, own)) for name, own in self.columns.items()}
        lines = aligned({head: texts[:MOST_PRINTED] for head, texts in shown.items()})
        more = len(self) - MOST_PRINTED
        return "\n".join([*lines, f"and {more:,} more rows"] if more > 0 else lines)

    __repr__ = __str__


def aligned(columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Returns the lines of a table of text: a heading, then the rows. Numbers are at the right."""
    cells = []
    for head, texts in columns.items():
        width = max(map(len, (head, *texts)))
        is_number = all(text[:1] in "+-\u2212\u2013.0123456789" for text in texts)
        side = ">" if is_number else "<"
        cells.append([f"{text:{side}{width}}" for text in (head, *texts)])
    return ["  ".join(line).rstrip() for line in zip(*cells, strict=True)]


def need(package: str) -> Any:
    """Imports an optional package. Raises Error if it is not installed."""
    try:
        return import_module(package)
    except ImportError:
        raise Error(f"{package} is not installed: pip install {package}") from None


def text_of(value: Any) -> str:
    """Returns a value as it is printed."""
    if value is None:
        return "\u2013"
    if isinstance(value, list):
        return ", ".join(map(text_of, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
