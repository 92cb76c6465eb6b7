"""The same seed gives the same bytes for any number of jobs. Another seed gives other results."""

import pyarrow.parquet as pq
import pytest

from headway._native import Batch, Scenario


@pytest.fixture
def bench(tmp_path):
    def call(seed, jobs):
        out = tmp_path / f"seed{seed}-jobs{jobs}"
        out.mkdir()
        scenarios = [Scenario.load(name) for name in ("pantheon-default", "synthetic-verizon")]
        batch = Batch(scenarios, ["newreno", "cubic", "bbr"], runs=4, seconds=6, seed=seed, jobs=jobs)
        batch.start()
        assert batch.wait(60)
        batch.write_parquet(str(out), lambda *_: "{}")
        return out

    return call


def test_results_depend_on_the_seed_and_not_on_the_number_of_jobs(bench):
    one, two, other = bench(1, 1), bench(1, 2), bench(2, 2)
    for name in ("results.parquet", "series.parquet"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
        assert (one / name).read_bytes() != (other / name).read_bytes()
    rates, others = (pq.read_table(f / "results.parquet")["throughput_mbps"].to_pylist() for f in (one, other))
    assert len(rates) == len(others) > 0
    assert sum(a != b for a, b in zip(rates, others, strict=True)) > len(rates) / 2


def test_pyarrow_can_read_our_parquet_files(small_bench):
    table = pq.read_table(small_bench / "results.parquet")
    assert table.schema.metadata[b"schema"] == b"6"
    results = table.to_pylist()
    # There are 2 schemes x 2 scenarios x 3 runs.
    assert len([r for r in results if r["flow"] == -1]) == 12
    assert {r["scheme"] for r in results} == {"newreno", "cubic"}
    for row in results:
        assert {"scenario_hash", "seed", "run", "world", "throughput_mbps", "loss"} <= set(row)
    series = pq.read_table(small_bench / "series.parquet").to_pylist()
    assert {r["run"] for r in series} == {0}
