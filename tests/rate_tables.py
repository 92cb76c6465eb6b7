"""Helpers for tests of traces and of tables of rates."""

import pytest

from headway._native import Trace, UsageError
from headway.traces import Columns, convert, open_trace


def trace_of(times, folder):
    """The trace of these opportunities, in milliseconds, and its file `made.down`."""
    path = folder / "made.down"
    path.write_text("".join(f"{t}\n" for t in times))
    return Trace.load(str(path), "whole")


def rates(path, step=1.0):
    return Trace.load(path, "whole").rates_mbps(step)


def told(tmp_path, text, **units):
    """The warnings when the table `text` becomes a trace."""
    (tmp_path / "a.log").write_text(text)
    return convert(tmp_path / "a.log", tmp_path / "a.down", 1.0, Columns(**units) if units else None)


def why_not(path, columns=None):
    """The reason why a table does not become a trace, or a `.down` file is not one.

    It is one line that names the file.
    """
    with pytest.raises(UsageError) as error:
        open_trace(str(path), "whole") if path.suffix == ".down" else convert(
            path, path.parent / "out.down", 1.0, columns
        )
    said = str(error.value)
    assert "\n" not in said
    assert path.name in said
    assert not (path.parent / "out.down").exists()
    return said
