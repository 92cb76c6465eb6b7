"""Checks whether two folders have the same results.

The place, the date and the duration of the runs may differ.
"""

import json

FILES = ("results.parquet", "series.parquet", "bench.json", "report.html")
NOT_OF_THE_RUN = ("at", "machine", "took_s")


def must_be_equal(one, other):
    for name in FILES:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def store_of(folder):
    """The runs of a store, without place, date and duration."""
    runs = map(json.loads, (folder / "runs.jsonl").read_text().splitlines())
    return sorted(json.dumps({k: v for k, v in run.items() if k not in NOT_OF_THE_RUN}) for run in runs)
