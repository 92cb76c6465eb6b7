import pytest

from headway.report.numbers import margin, number


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.00"), (0.1234, "0.123"), (4.826, "4.83"), (97.64, "97.6"), (1234.4, "1234"), (-4.826, "-4.83")],
)
def test_three_digits_or_so(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "mean", "text"),
    [(0.117, 4.62, "0.12"), (66.1, 2254, "66"), (0.004, 16.4, "<0.1"), (0.2, 2254, "<1"), (0.0, 4.62, "0.00")],
)
def test_a_margin_has_the_digits_of_its_mean_and_is_never_a_false_zero(value, mean, text):
    assert margin(value, mean) == text
