import pytest

from headway.report.numbers import margin, number, spread


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.00"), (0.1234, "0.123"), (4.826, "4.83"), (97.64, "97.6"), (1234.4, "1234"), (-4.826, "-4.83")],
)
def test_numbers_have_about_three_significant_digits(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "mean", "text"),
    [(0.117, 4.62, "0.12"), (66.1, 2254, "66"), (0.004, 16.4, "<0.1"), (0.2, 2254, "<1"), (0.0, 4.62, "0.00")],
)
def test_a_margin_has_the_digits_of_its_mean_and_never_rounds_to_zero(value, mean, text):
    assert margin(value, mean) == text


@pytest.mark.parametrize(
    ("low", "high", "mean", "text"),
    [
        (4.5, 4.7, 4.6, "\u00b1 0.10"),
        (9.0, 11.2, 10.0, "\u00b1 1.1"),
        # BBR's loss on owl-lte-att in five runs: half of the interval reaches below zero.
        (4.3, 69.4, 21.2, "(4.3\u201369.4)"),
        (0.0, 0.004, 0.001, "(0.000\u20130.004)"),
        # Sides with the same written form are alike.
        (12.0, 12.04, 12.01, "\u00b1 <0.1"),
        (3.0, 3.0, 3.0, "\u00b1 0.00"),
    ],
)
def test_half_an_interval_is_written_only_if_its_sides_are_alike(low, high, mean, text):
    assert spread(low, high, mean) == text
