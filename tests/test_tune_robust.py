"""Smoothing and rules (section III-A), compared with NumPy and SciPy."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal

from headway.tune.robust import Limits, LowPass, Rules, Slope
from headway.tune.stats import FlowStats

GOOD = FlowStats(
    flow="10.0.0.1:5000-10.0.0.2:443",
    time_s=100.0,
    rtt_ms=20.0,
    srtt_ms=21.0,
    min_rtt_ms=10.0,
    delivery_rate_mbps=9.0,
    pacing_rate_mbps=11.0,
    cwnd_packets=30,
    in_flight_packets=20,
    acked_bytes=1_000_000,
    delivered_packets=700,
    lost_packets=3,
    retransmitted_packets=4,
    mss_bytes=1500,
    payload_bytes=1448,
    btlbw_mbps=10.0,
    rtprop_ms=10.0,
    pacing_gain=1.0,
    cwnd_gain=2.0,
)
AFTER = replace(GOOD, time_s=100.02, acked_bytes=1_020_000, delivered_packets=714)


def filtered(cutoff_hz, times, values):
    low_pass = LowPass(cutoff_hz)
    return np.array([low_pass.add(t, x) for t, x in zip(times, values, strict=True)])


@pytest.mark.parametrize("cutoff_hz", [0.5, 5.0, 50.0])
def test_the_filter_attenuates_by_3_db_at_its_cut_off(cutoff_hz):
    every_s = 1 / (400 * cutoff_hz)
    times = np.arange(16000) * every_s
    y = filtered(cutoff_hz, times, np.sin(2 * np.pi * cutoff_hz * times))[8000:]
    gain_db = 20 * math.log10((y.max() - y.min()) / 2)
    assert gain_db == pytest.approx(20 * math.log10(math.sqrt(0.5)), abs=0.05)


def test_the_filter_equals_scipys_first_order_filter():
    values = np.random.default_rng(1).normal(size=500)
    share = 1 - math.exp(-2 * math.pi * 5 * 0.02)
    outside, _ = signal.lfilter([share], [1, share - 1], values, zi=[(1 - share) * values[0]])
    assert filtered(5.0, np.arange(500) * 0.02, values) == pytest.approx(outside, abs=1e-12)


@given(
    st.floats(0.01, 100),
    st.lists(st.tuples(st.floats(0, 1), st.floats(-1e3, 1e3)), min_size=1, max_size=50),
    st.integers(1, 20),
)
def test_a_constant_stretch_counts_by_its_length_not_its_samples(cutoff_hz, steps, parts):
    """For irregular samples one step of dt, and the same in several parts, give the same result."""
    once, often = LowPass(cutoff_hz), LowPass(cutoff_hz)
    at, low, high = 0.0, math.inf, -math.inf
    for dt, value in steps:
        for part in range(1, parts + 1):
            last = often.add(at + dt * part / parts, value)
        at += dt
        low, high = min(low, value), max(high, value)
        assert once.add(at, value) == pytest.approx(last, rel=1e-6, abs=1e-6)
        assert low - 1e-9 <= last <= high + 1e-9


@given(st.lists(st.tuples(st.floats(1e-3, 1), st.floats(1e-4, 1)), min_size=2, max_size=60))
def test_the_slope_equals_that_of_polyfit(steps):
    times = 1e5 + np.cumsum([dt for dt, _ in steps])
    values = np.array([x for _, x in steps])
    slope = Slope(window_s=1e3)
    for t, x in zip(times, values, strict=True):
        slope.add(t, x)
    outside = np.polyfit(times - times.mean(), values, 1)[0]
    assert slope.value() == pytest.approx(outside, rel=1e-6, abs=1e-7)


def test_the_slope_uses_only_the_window():
    slope = Slope(window_s=1.0)
    assert slope.value() == 0
    for t in np.arange(0, 5, 0.1):
        slope.add(t, 7.0 if t < 3.5 else 2 * t)
    assert slope.value() == pytest.approx(2.0)
    slope.add(1.0, 1e9)
    assert slope.value() == pytest.approx(2.0), "a sample out of order changes nothing"


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan])
def test_a_filter_and_a_window_need_a_positive_size(wrong):
    with pytest.raises(ValueError, match="above 0"):
        LowPass(wrong)
    with pytest.raises(ValueError, match="above 0"):
        Slope(wrong)


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        ("not-finite", {"rtt_ms": math.nan}),
        ("not-finite", {"btlbw_mbps": math.inf}),
        ("rtt", {"rtt_ms": 0.0}),
        ("rtt", {"min_rtt_ms": -1.0}),
        ("rtt", {"srtt_ms": 1e-5}),
        ("rtt", {"rtt_ms": 1e7}),
        ("rate", {"delivery_rate_mbps": 1e7}),
        ("rate", {"btlbw_mbps": 1e7}),
        ("rate", {"pacing_rate_mbps": -1.0}),
        ("rate", {"acked_bytes": 10**13}),
        ("window", {"cwnd_packets": 0}),
        ("window", {"in_flight_packets": -1}),
        ("rtprop", {"rtprop_ms": 5000.0}),
        ("time", {"time_s": 100.0}),
        ("time", {"time_s": 1.0}),
        ("counters", {"acked_bytes": 0}),
        ("counters", {"lost_packets": 2}),
        ("counters", {"delivered_packets": 0}),
    ],
)
def test_impossible_samples_are_rejected_and_counted_by_rule(rule, wrong):
    rules = Rules()
    assert rules.accepts(GOOD)
    assert rules.accepts(AFTER, GOOD)
    assert not rules.rejected
    assert not rules.accepts(replace(AFTER, **wrong), GOOD)
    assert rules.rejected == {rule: 1}


def test_an_outdated_rtprop_is_not_rejected():
    """The paper's case (section V-A): the path became shorter, and BBR has not noticed yet."""
    assert Rules().accepts(replace(GOOD, rtt_ms=40.0, srtt_ms=40.0, rtprop_ms=400.0))


@pytest.mark.parametrize(
    ("settings", "is_right"),
    [
        ({"rtprop_window": 2.0, "btlbw_window": 4.0}, True),
        ({"rtprop_window": 0.1}, True),
        ({"rtprop_window": 0.05}, False),
        ({"rtprop_window": math.nan}, False),
        ({"btlbw_window": 4.5}, False),
        ({"btlbw_window": 1001.0}, False),
        ({"cwnd": 10.0}, False),
        ({}, False),
    ],
)
def test_an_action_has_existing_parameters_within_their_ranges(settings, is_right):
    rules = Rules()
    assert rules.accepts_action(settings) is is_right
    assert rules.rejected["action"] == (not is_right)


def test_a_tuple_is_as_good_as_its_worst_part():
    rules = Rules(Limits(reward=(0.0, 1.0)))
    action = {"rtprop_window": 2.0}
    assert rules.accepts_tuple(AFTER, action, 0.5, GOOD)
    assert not rules.accepts_tuple(AFTER, action, 1.5, GOOD)
    assert not rules.accepts_tuple(AFTER, action, math.nan, GOOD)
    assert not rules.accepts_tuple(AFTER, {"rtprop_window": -1.0}, 0.5, GOOD)
    assert not rules.accepts_tuple(replace(AFTER, cwnd_packets=0), action, 0.5, GOOD)
    assert rules.rejected == {"reward": 2, "action": 1, "window": 1}


anything = st.floats() | st.floats(0, 100)


@given(anything, anything, anything, anything, anything, anything)
def test_every_accepted_sample_is_finite_and_within_limits(rtt, rate, cwnd, rtprop, gain, reward):
    rules = Rules()
    stats = replace(GOOD, rtt_ms=rtt, delivery_rate_mbps=rate, cwnd_packets=cwnd, rtprop_ms=rtprop, cwnd_gain=gain)
    if rules.accepts_tuple(stats, {"btlbw_window": 4.0}, reward):
        assert all(map(math.isfinite, (rtt, rate, cwnd, rtprop, gain, reward)))
        assert rtt > 0
        assert cwnd >= 1
    else:
        assert sum(rules.rejected.values()) == 1
