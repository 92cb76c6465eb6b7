import pytest

from headway.stats import mean_ellipse
from headway.summary import METRICS, Offsets, regions, summarise


def one(scheme, number, flow=-1, scenario="link", **metrics):
    values = dict.fromkeys(METRICS) | {"throughput_mbps": float(number)} | metrics
    return {
        "scheme": scheme,
        "scenario": scenario,
        "scenario_hash": "0" * 16,
        "run": number,
        "seed": 100 + number,
        "flow": flow,
        "flow_scheme": scheme,
        "world": "sim",
        "seconds": 10.0,
        **values,
    }


def test_there_is_one_row_per_scheme_and_scenario_in_the_order_of_the_runs():
    runs = [one(s, k, scenario=c) for s in ("b", "a") for c in ("y", "x") for k in range(3)]
    rows = summarise(runs)
    assert [(r["scheme"], r["scenario"]) for r in rows] == [("b", "y"), ("b", "x"), ("a", "y"), ("a", "x")]
    assert all(r["runs"] == 3 for r in rows)


def test_the_mean_and_its_interval():
    (row,) = summarise([one("a", k) for k in range(10)])
    metric = row["throughput_mbps"]
    assert metric["mean"] == pytest.approx(4.5)
    # Student's interval is 4.5 +- 2.262 * 3.028 / sqrt(10).
    assert metric["ci95"] == pytest.approx([4.5 - 2.166, 4.5 + 2.166], abs=0.001)


def test_an_interval_ends_at_the_bounds_of_its_metric():
    """With two runs, one without any loss, Student's interval would begin far below 0."""
    (row,) = summarise([one("a", k, loss=0.01 * k, utility=0.01 * k, jain=1 - 0.01 * k) for k in range(2)])
    assert row["jain"]["ci95"][1] == 1.0
    assert row["loss"]["ci95"][0] == 0.0
    assert row["utility"]["ci95"][0] < -0.05


def test_one_run_has_no_interval_and_a_metric_that_does_not_apply_no_mean():
    (row,) = summarise([one("a", 3)])
    assert row["throughput_mbps"] == {"mean": 3.0, "ci95": None}
    assert row["jain"] == {"mean": None, "ci95": None}


def test_each_of_several_models_is_one_sample_of_the_confidence_region():
    """Thirty runs of six models have the region of six points.

    The points are the means of each model's five runs.
    """
    delays = [20.0, 23.0, 21.0, 26.0, 22.0, 25.0]
    rates = [5.0, 6.0, 5.5, 7.5, 6.0, 6.5]
    runs = [
        one("a", k, delay_p95_ms=delays[k % 6] + 0.1 * (k // 6), throughput_mbps=rates[k % 6]) | {"model": k % 6}
        for k in range(30)
    ]
    assert regions(runs)["a", "link"] == mean_ellipse([delay + 0.2 for delay in delays], rates)
    # Four models are too few, for any number of runs.
    assert regions([run | {"model": run["model"] % 4} for run in runs]) == {}


def test_several_flows_have_separate_rows():
    runs = [one("a", k, flow, throughput_mbps=2.0 + flow) for k in range(2) for flow in (-1, 0, 1)]
    (row,) = summarise(runs)
    assert row["throughput_mbps"]["mean"] == 1.0
    assert [(f["flow"], f["throughput_mbps"]["mean"]) for f in row["flows"]] == [(0, 2.0), (1, 3.0)]


def test_flows_that_are_not_in_every_run_have_no_separate_rows():
    runs = [one("a", k, flow) for k in range(3) for flow in (-1, 0, 1)]
    assert len(summarise(runs)[0]["flows"]) == 2
    assert "flows" not in summarise([*runs, one("a", 1, 2)])[0]


def test_a_metric_that_few_runs_have_still_has_an_interval():
    """Of 30 runs that overlap by five, every sixth converges. These five do not overlap."""
    runs = [one("a", k, convergence_s=10.0 + k if k % 6 == 0 else None) for k in range(30)]
    offsets = {"link": Offsets(60.0, lambda seed: 2.0 * (seed - 100))}
    # Student's interval of 10, 16, 22, 28 and 34 is 22 +- 2.776 * 9.487 / sqrt(5).
    assert summarise(runs, offsets)[0]["convergence_s"]["ci95"] == pytest.approx([10.22, 33.78], abs=0.01)


def test_overlapping_runs_are_drawn_in_blocks():
    """Rates change slowly with the offset.

    Overlapping runs contain less information than independent ones.
    """
    rates = [0.0] * 8 + [1.0] * 8
    # Runs are in any order. Only their offsets show the neighbours.
    order = [(5 * k) % 16 for k in range(16)]
    runs = [one("a", k, throughput_mbps=rates[at]) for k, at in enumerate(order)]

    def width(offsets):
        low, high = summarise(runs, offsets)[0]["throughput_mbps"]["ci95"]
        return high - low

    overlapping = {"link": Offsets(40.0, lambda seed: 2.5 * order[seed - 100])}
    assert width(overlapping) > 1.4 * width(None)
