"""The time series of the report, compared with values counted by hand."""

import pytest

from headway.report.families import families
from headway.report.series import distribution, fairness, line, shares


def flow(number, rates, step=0.5, **columns):
    return {
        "flow": number,
        "time_s": [k * step for k in range(len(rates))],
        "throughput_mbps": rates,
        "in_flight_packets": [1.0] * len(rates),
        **columns,
    }


def test_jains_index_is_of_the_flows_present():
    # Flow 1 starts in the second second and ends in the middle of the fourth. Flow 2 delivers
    # nothing for a second between, and after that time.
    flows = [
        flow(0, [4, 4, 4, 4, 4, 4, 4, 4]),
        flow(1, [0, 0, 4, 4, 2, 2, 2, 0], in_flight_packets=[None, None, 1, 1, 1, 1, 1, None]),
        flow(2, [0, 0, 4, 4, 0, 0, 0, 0], in_flight_packets=[None, None, 1, 1, 0, 0, 1, 1]),
    ]
    index = fairness(flows, 100)
    assert [t for t, _ in index] == [0, 1, 2, 3, 4]
    # The cases are: one alone; three equal; 4, 2 and 0 of three: 36 / (3 * 20); 4 and 0 of two.
    assert [v for _, v in index] == [None, *(pytest.approx(v) for v in (1, 0.6, 0.5, 0.5))]


def test_shares_are_of_the_total_delivered_and_have_gaps_where_it_is_zero():
    first, second = shares([flow(0, [3, 3, 0, 0, 1, 3]), flow(1, [1, 1, 0, 0, 3, 5])], 100)
    assert first == [(0, 0.75), (1, None), (2, pytest.approx(4 / 12)), (3, pytest.approx(4 / 12))]
    assert second == [(0, 0.25), (1, None), (2, pytest.approx(8 / 12)), (3, pytest.approx(8 / 12))]


def test_bins_longer_than_a_second_are_unchanged():
    assert shares([flow(0, [3, 1], 2.0), flow(1, [1, 3], 2.0)], 100)[0] == [(0, 0.75), (2, 0.25), (4, 0.25)]


def test_a_line_is_thinned_to_means_and_drawn_to_its_end():
    series = flow(0, [1, 3, 5, 7, 9])
    assert line(series, "throughput_mbps", 5) == [(0, 1), (0.5, 3), (1, 5), (1.5, 7), (2, 9), (2.5, 9)]
    assert line(series, "throughput_mbps", 3) == [(0, 2), (1, 6), (2, 9), (2.5, 9)]
    gaps = flow(0, [1, 1, 1, 1], delay_mean_ms=[10.0, None, None, None])
    assert line(gaps, "delay_mean_ms", 2) == [(0, 10), (1, None), (2, None)]
    assert line(gaps, "cwnd_packets", 2) == []


def test_the_distribution_is_the_empirical_one():
    delays = flow(0, [1] * 5, delay_mean_ms=[30.0, 10.0, None, 20.0, 20.0])
    assert distribution(delays, "delay_mean_ms", 100) == [(10, 0.25), (20, 0.5), (20, 0.75), (30, 1)]
    # For any number of points, the largest value is the end.
    assert distribution(delays, "delay_mean_ms", 2)[-1] == (30, 1)


def scenarios(key, *names, family="owl-buffer"):
    return [
        {"name": f"{family}:{key.rpartition('.')[2]}={v}", "sweep": {"family": family, "key": key}} for v in names
    ]


def test_a_sweep_is_ordered_by_value_in_one_unit():
    alone = {"name": "rax-1", "sweep": None}
    (family,) = families([alone, *scenarios("bottleneck.queue", "1MB", "150kB", "1500kB")])
    assert (family.name, family.setting, family.unit) == ("owl-buffer", "bottleneck.queue", "MB")
    assert list(family.values.values()) == pytest.approx([0.15, 1, 1.5])
    assert list(family.values) == ["owl-buffer:queue=150kB", "owl-buffer:queue=1MB", "owl-buffer:queue=1500kB"]


def test_values_without_numbers_or_with_mixed_units_are_not_a_sweep():
    assert families(scenarios("bottleneck.discipline", "codel", "pie")) == []
    assert families(scenarios("bottleneck.queue", "150kB", "100pkt")) == []
    assert families(scenarios("bottleneck.queue", "150kB")) == []
