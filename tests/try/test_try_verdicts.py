"""Verdicts, notes and the picture of a trial, from made-up rows.

Intervals are worked out by hand.
"""

import pytest

from headway.compare import Zone
from headway.path_trial.picture import picture
from headway.path_trial.verdicts import in_one_sentence, notes, summary, verdicts, whole_rounds
from path_trials import SCHEMES, row


def pairs(metric, first, second):
    """A round for each two values of a metric, of cubic and of owl."""
    both = enumerate(zip(first, second, strict=True))
    rows = [(row(k, "cubic", **{metric: a}), row(k, "owl", **{metric: b})) for k, (a, b) in both]
    return whole_rounds([one for two in rows for one in two], list(SCHEMES))


def verdict(metric, first, second):
    found = verdicts(pairs(metric, first, second), list(SCHEMES))
    return next(one for one in found if one.measure.metric == metric)


def test_a_verdict_uses_the_differences_within_rounds():
    """The differences are -10, -12, -14 and -12 ms.

    Student's t of 3 degrees of freedom is 3.182.
    """
    found = verdict("rtt_p95_ms", [100, 110, 120, 100], [90, 98, 106, 88])
    # The standard deviation is sqrt(8 / 3), half the interval 3.182 * 1.633 / 2 = 2.598.
    assert found.difference["ci95"] == pytest.approx([-14.598, -9.402], abs=0.001)
    assert (found.zone, found.rounds) == (Zone.BETTER, 4)
    says = "Over this path owl had 12.0 ms (9.4 to 14.6) less p95 RTT than cubic; 4 rounds."
    assert found.sentence == says


def test_throughput_is_compared_in_percent():
    """Two equal rounds leave 78% of all rounds uncertain (1 - 0.05^(1/2)).

    Each of them may be off by up to 10 points.
    """
    found = verdict("throughput_mbps", [10, 10], [11, 11])
    says = "Over this path owl had 10.0% (2.2 to 17.8) more throughput than cubic; 2 rounds."
    assert (found.zone, found.sentence) == (Zone.BETTER, says)


def test_a_verdict_says_when_there_are_too_few_rounds():
    """The shares are 0, 10, -10 and 0 points around 10%. Half an interval is 3.182 * 8.165 / 2."""
    found = verdict("throughput_mbps", [10] * 4, [11, 12, 10, 11])
    assert found.zone == Zone.UNCLEAR
    # 4 * (12.99 / 10) ** 2 is 6.75.
    assert found.sentence == (
        "4 rounds cannot tell whether owl had more or less throughput than cubic: "
        "10.0% (-3.0 to 23.0); about 7 rounds may tell."
    )


def test_without_variation_the_rule_of_three_says_how_many_rounds_are_needed():
    """1 - 0.05^(1/n) of all rounds may be off by 1 point.

    From 29 rounds on this is below the margin of 0.1.
    """
    found = verdict("retransmitted", [0.0] * 5, [0.0] * 5)
    assert found.zone == Zone.UNCLEAR
    assert found.sentence.endswith(" (-0.45 to 0.45); about 29 rounds may tell.")
    # A round that is slightly off changes nothing.
    nearly = verdict("retransmitted", [0.0] * 5, [0.0] * 4 + [1e-9])
    assert nearly.sentence.endswith("about 29 rounds may tell.")
    assert verdict("retransmitted", [0.0] * 28, [0.0] * 28).zone == Zone.UNCLEAR
    assert verdict("retransmitted", [0.0] * 29, [0.0] * 29).zone == Zone.EQUAL


def test_a_verdict_says_when_even_many_rounds_may_not_suffice():
    says = "even 1000 rounds may not tell."
    assert verdict("throughput_mbps", [10, 10], [9, 11.001]).sentence.endswith(says)


def test_one_round_gives_no_verdict():
    says = "1 round cannot tell whether owl had more or less throughput than cubic."
    assert verdict("throughput_mbps", [10], [20]).sentence == says
    assert verdict("throughput_mbps", [], []).sentence.startswith("0 rounds cannot tell")


def sentence(count, schemes=tuple(SCHEMES), **measures):
    """The summary of this many rounds. A measure has the values of each scheme, or is the same."""
    rows = [
        row(k, scheme, **{metric: values[at][k] for metric, values in measures.items()})
        for k in range(count)
        for at, scheme in enumerate(schemes)
    ]
    return in_one_sentence(verdicts(whole_rounds(rows, schemes), schemes))


LOWER = [100, 110, 120, 100], [90, 98, 106, 88]
"""The p95 RTT of the first test."""
NOISY = [80.0] * 29, [70.0 + 20 * (k % 2) for k in range(29)]
FOUR = "Over this path, in 4 rounds against cubic: "
MANY = "Over this path, in 29 rounds against cubic: "


@pytest.mark.parametrize(
    ("count", "measures", "says"),
    [
        (
            4,
            {"rtt_p95_ms": LOWER},
            f"{FOUR}owl was better in p95 RTT, with no verdict on throughput, p50 RTT and retransmissions.",
        ),
        # Four equal rounds leave 53% of all rounds open, each by up to ten margins.
        (
            4,
            {"retransmitted": ([0.0] * 4, [0.02] * 4)},
            f"{FOUR}owl was worse in retransmissions, with no verdict on throughput, p50 RTT and p95 RTT.",
        ),
        (
            4,
            {"throughput_mbps": ([10] * 4, [11] * 4), "rtt_p95_ms": LOWER},
            f"{FOUR}owl was better in throughput and p95 RTT, with no verdict on p50 RTT and retransmissions.",
        ),
        (
            4,
            {"throughput_mbps": ([10] * 4, [8] * 4), "rtt_p95_ms": LOWER},
            f"{FOUR}owl was better in p95 RTT, and worse in throughput, with no verdict on p50 RTT and "
            "retransmissions.",
        ),
        (4, {}, f"{FOUR}no verdict on the throughput, p50 RTT, p95 RTT and retransmissions of owl."),
        # From 29 equal rounds on, two schemes are the same.
        (29, {}, f"{MANY}owl was equal in throughput, p50 RTT, p95 RTT and retransmissions."),
        (
            29,
            {"rtt_p50_ms": NOISY},
            f"{MANY}owl was equal in throughput, p95 RTT and retransmissions, with no verdict on p50 RTT.",
        ),
        (
            29,
            {"throughput_mbps": ([10] * 29, [11] * 29)},
            f"{MANY}owl was better in throughput, and equal in p50 RTT, p95 RTT and retransmissions.",
        ),
        (1, {"throughput_mbps": ([10], [20])}, "1 round is too few to compare owl with cubic over this path."),
        (0, {}, "0 rounds are too few to compare owl with cubic over this path."),
    ],
    ids=[
        *("better in one", "worse in one", "better in both", "opposite", "none shown", "the same"),
        *("the same but one", "better and the same", "one round", "no round"),
    ],
)
def test_one_sentence_sums_up_the_verdicts(count, measures, says):
    assert sentence(count, **measures) == says


def test_the_sentence_has_each_scheme_that_is_compared():
    three = ("cubic", "bbr", "owl")
    rates = [10] * 4, [11] * 4, [8] * 4
    open_ = "with no verdict on p50 RTT, p95 RTT and retransmissions"
    assert sentence(4, three, throughput_mbps=rates) == (
        f"{FOUR}bbr was better in throughput, {open_}; owl was worse in throughput, {open_}."
    )
    assert sentence(1, three) == "1 round is too few to compare bbr and owl with cubic over this path."


def test_the_summary_has_the_sentence():
    rows = [row(k, scheme) for k in range(4) for scheme in SCHEMES]
    assert summary(rows, SCHEMES)["summary"] == sentence(4)


def test_schemes_within_the_margin_are_the_same():
    """The differences are 100 / 4096 points either way. Half an interval is 3.182 * 0.0282 / 2."""
    near = [1 / 64 + 1 / 4096, 1 / 64 - 1 / 4096]
    found = verdict("retransmitted", [1 / 64] * 4, near * 2)
    assert (found.zone, found.sentence) == (
        Zone.EQUAL,
        "Over this path owl and cubic had the same retransmissions, within 0.1 percentage points "
        "(-0.04 to 0.04); 4 rounds.",
    )


def test_the_margin_of_an_rtt_is_a_percent_of_the_first_scheme():
    apart = [100.9, 100.8, 100.85]
    assert verdict("rtt_p50_ms", [100.0] * 3, apart).zone == Zone.EQUAL
    # The differences are 0.69 to 1.07 ms, and 0.8 ms are 1%.
    not_better = verdict("rtt_p50_ms", [80.0] * 3, [80.9, 80.8, 80.95])
    assert not_better.zone == Zone.NOT_BETTER
    assert not_better.sentence == (
        "Over this path owl had 0.883 ms (0.694 to 1.073) more p50 RTT than cubic, "
        "but within 0.8 ms they count as equal; 3 rounds."
    )
    assert verdict("rtt_p50_ms", [80.0] * 3, [81.2, 81.1, 81.25]).zone == Zone.WORSE


def test_an_incomplete_round_does_not_count():
    rows = [row(0, "cubic"), row(0, "owl"), row(1, "owl", throughput_mbps=99.0), row(2, "cubic")]
    assert [sorted(one) for one in whole_rounds(rows, SCHEMES)] == [["cubic", "owl"]]


def test_a_note_says_when_a_window_or_a_buffer_limited_a_scheme():
    rounds = pairs("window_limited", [0.0] * 10, [0.4] * 10)
    assert [line[:56] for line in notes(rounds, list(SCHEMES))] == [
        "the receiver's window held owl back for 40% of its time,"
    ]
    rounds = pairs("buffer_limited", [0.3] * 10, [0.0] * 10)
    assert notes(rounds, list(SCHEMES)) == [
        "this machine's send buffer held cubic back for 30% of its time, so that no controller "
        "could send more; raise the last number of net.ipv4.tcp_wmem here"
    ]
    few = notes(pairs("window_limited", [0.0] * 3, [0.0] * 3), list(SCHEMES))
    assert few == ["with fewer than 10 rounds intervals are rough; give more --minutes"]


def test_the_picture_has_a_point_and_a_region_for_each_scheme():
    rounds = [*range(9, 12), *range(9, 12)]
    rows = [
        row(k, scheme, rtt_p95_ms=90.0 + v, throughput_mbps=9 + v % 4)
        for k, v in enumerate(rounds)
        for scheme in SCHEMES
    ]
    layers = {layer.get("name", "") for layer in picture(rows, list(SCHEMES), "there")["layer"]}
    assert {"k0-point", "k0-region", "k1-point", "k1-region"} <= layers
