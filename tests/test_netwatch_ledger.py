"""The agent's interpretation of a switch's counters, by vectors worked out by hand."""

import pytest

from headway.netwatch.ledger import PROBATION, UNSUPPORTED, Ledger
from headway.netwatch.source import Counters, PortReading, Reading

MBPS = 1_000_000
ZERO = (0, 0, 0, 0)


def ledger(line_rate=100 * MBPS, longest_s=5.0):
    return Ledger({"1": line_rate}, longest_s)


def reading(at_s, counters=ZERO, *, clock_s=None, port="1", life=0, within_s=0.0):
    clock_ns = round((at_s if clock_s is None else clock_s) * 1e9)
    return Reading("s", at_s, {port: PortReading(Counters(*counters, clock_ns), life)}, within_s)


def grown(one):
    """The counts of the port in the last interval, and its length by the port's own clock."""
    interval = one.intervals["1"]
    assert interval.before[:4] == ZERO
    return interval.after[:4], interval.after.at_ns - interval.before.at_ns


def enter(one, *readings):
    for each in readings:
        one.enter(each)


def test_differences_by_the_own_clock_of_the_switch():
    one = ledger()
    enter(one, reading(10, (5, 500, 7, 700), clock_s=100), reading(11, (15, 1500, 27, 2700), clock_s=101.02))
    assert grown(one) == ((10, 1000, 20, 2000), 1_020_000_000)
    assert one.taken_s == 11
    assert one.counted == {"readings": 2}


def test_a_single_reading_gives_no_difference():
    one = ledger()
    enter(one, reading(10))
    assert not one.intervals
    assert one.taken_s == 10


@pytest.mark.parametrize("bits", [32, 64])
def test_a_counter_wrap_is_handled(bits):
    # 64 bits all ones mean a counter that is not kept, so the largest value is one less.
    top = (1 << bits) - 2
    one = ledger()
    enter(one, reading(10, (top, top, 0, 0)), reading(11, (8, 998, 1, 100)))
    assert grown(one)[0] == (10, 1000, 1, 100)
    assert one.counted["wrap"] == 2
    assert not one.quarantine


def test_a_wrap_of_32_bits_is_not_assumed_if_it_could_be_a_reset():
    # 100 Gbit/s are three times 2^32 bytes a second.
    one = ledger(line_rate=100_000 * MBPS)
    enter(one, reading(10, (0, (1 << 32) - 2, 0, 0)), reading(11, (0, 998, 0, 0)))
    assert not one.intervals
    assert one.counted["reset"] == 1


def test_a_reset_restarts_counting_and_is_not_an_impossible_reading():
    one = ledger()
    enter(one, reading(10, (900, 90000, 900, 90000)), reading(11, (3, 300, 4, 400)))
    assert not one.intervals
    assert one.counted["reset"] == 1
    enter(one, reading(12, (13, 1300, 4, 400)))
    assert grown(one)[0] == (10, 1000, 0, 0)


def test_a_clock_that_restarts_is_a_reset_even_with_larger_counters():
    one = ledger()
    enter(one, reading(10, (1, 100, 0, 0), clock_s=500), reading(11, (9, 900, 9, 900), clock_s=0.5))
    assert not one.intervals
    assert one.counted == {"readings": 2, "reset": 1}


def test_another_interface_of_the_same_name_is_a_reset():
    one = ledger()
    enter(one, reading(10, (1, 100, 0, 0), life=4), reading(11, (2, 200, 0, 0), life=5))
    assert not one.intervals
    assert one.counted["reset"] == 1


LIES = [
    # The counts are 160 Mbit in a second.
    ((0, 20 * MBPS, 0, 0), "a rate above the link's"),
    # The same number of empty packets is 123 Mbit.
    ((0, 0, 1_100_000, 0), "a rate above the link's"),
    ((90, 9000, 200, 20000), "a counter that went back"),
    ((UNSUPPORTED, 10100, 110, 11000), "a counter that the switch does not keep"),
]


@pytest.mark.parametrize(("lie", "why"), LIES)
def test_an_impossible_reading_puts_a_switch_on_probation(lie, why):
    one = ledger()
    honest = [(100 + n, 10000 + 100 * n, 100 + n, 10000 + 100 * n) for n in range(20)]
    enter(one, reading(10, honest[0]), reading(11, honest[1]))
    assert one.intervals
    enter(one, reading(12, lie))
    assert not one.intervals
    assert one.quarantine == why
    # Correct counts look impossible once more, compared with the wrong ones.
    enter(one, reading(13, honest[3]))
    for n in range(1, PROBATION):
        enter(one, reading(13 + n, honest[3 + n]))
        assert not one.intervals
        assert one.quarantine
    enter(one, reading(13 + PROBATION, honest[3 + PROBATION]))
    if not one.intervals:  # the way back looked impossible too, so probation began a reading later
        enter(one, reading(14 + PROBATION, honest[4 + PROBATION]))
    assert grown(one)[0] == (1, 100, 1, 100)
    assert not one.quarantine
    assert one.counted[f"lie: {why}"] >= 1


def test_a_reading_at_the_line_rate_is_accepted():
    one = ledger()
    enter(one, reading(10), reading(11, (8000, 12_500_000, 8000, 12_500_000)))
    assert one.intervals


@pytest.mark.parametrize(
    ("pace", "is_right"), [(1.0, True), (1.02, True), (0.98, True), (1.2, False), (0.5, False)]
)
def test_a_clock_at_a_wrong_rate_is_detected(pace, is_right):
    one = ledger()
    for second in range(30):
        enter(one, reading(second, (second, 100 * second, 0, 0), clock_s=1000 + pace * second))
    assert bool(one.intervals) == is_right
    assert bool(one.counted["lie: a clock that runs wrong"]) != is_right


def test_a_clock_with_a_constant_offset_is_accepted():
    one = ledger()
    for second in range(5):
        enter(one, reading(second, (second, 100 * second, 0, 0), clock_s=5e8 + second))
    assert grown(one) == ((1, 100, 0, 0), 1_000_000_000)


def test_if_a_clock_stops_the_older_reading_ages():
    one = ledger()
    enter(one, reading(10, clock_s=5), reading(11, (1, 100, 0, 0), clock_s=6))
    enter(one, *(reading(12 + n, (2 + n, 200, 0, 0), clock_s=6) for n in range(3)))
    assert one.taken_s == 11
    assert one.counted["clock stands still"] == 3


def test_a_slow_answer_does_not_count_as_a_wrong_clock():
    # The request was sent at 11, and answered somewhere in the 0.9 s after.
    one = ledger()
    enter(one, reading(10, clock_s=10), reading(11, (1, 100, 0, 0), clock_s=11.9, within_s=0.9))
    assert one.intervals


def test_a_gap_or_changed_ports_restart_counting():
    one = ledger()
    enter(one, reading(10), reading(11, (1, 100, 0, 0)), reading(20, (2, 200, 0, 0)))
    assert (one.counted["gap"], dict(one.intervals)) == (1, {})
    enter(one, reading(21, (3, 300, 0, 0)))
    assert one.intervals
    enter(one, reading(22, (4, 400, 0, 0), port="2"))
    assert (one.counted["ports changed"], dict(one.intervals)) == (1, {})


def test_an_answer_out_of_order_is_ignored():
    one = ledger()
    enter(one, reading(10), reading(11, (5, 500, 0, 0)), reading(10.5, (2, 200, 0, 0)))
    assert grown(one)[0] == (5, 500, 0, 0)
    assert one.counted["out of order"] == 1
