"""Values on pages have at most four significant digits and no JSON."""

import pytest

from plain import in_words, rounded


@pytest.mark.parametrize(
    ("text", "better"),
    [
        ("116 +- 5.800000000000001 ms", "116 +- 5.8 ms"),
        ("13.861763660688288 +- 1 packets", "13.86 +- 1 packets"),
        ("0.0008051529790660261 lost, 7.2e-05 ms", "0.0008052 lost, 7.2e-05 ms"),
        ("12345.67 packets", "12346 packets"),
        ("1.000 of Cubic's 19.42 Mbit/s", "1.000 of Cubic's 19.42 Mbit/s"),
        ("24877 came, Linux 6.12.34567, 10.0.0.1", "24877 came, Linux 6.12.34567, 10.0.0.1"),
    ],
)
def test_decimals_are_rounded_to_four_significant_digits(text, better):
    assert rounded(text) == better


@pytest.mark.parametrize(
    ("text", "better"),
    [
        ('{"scheme": "cubic", "loss": {"mean": 0.01410129, "ci95": null}}', "scheme cubic, loss (mean 0.0141)"),
        ('{"jain": {"mean": null}, "loss": {"ci95": [0.01, 0.02]}, "unfit": []}', "loss (ci95 0.01 and 0.02)"),
        ("[20.068782498128712, 30.111228003079304]", "20.07, 30.11"),
        ("[20.068782498128712, 30.1] ms of Cubic's", "20.07, 30.1 ms of Cubic's"),
        ("after {2: 0.5536849619966233, 40: 3.0}", "after 2: 0.5537, 40: 3.0"),
        ("{'loss': 2, 'stale': 0}", "loss: 2, stale: 0"),
        ("12 Mbit/s | 20 ms", "12 Mbit/s | 20 ms"),
    ],
)
def test_json_and_lists_are_written_in_words(text, better):
    assert in_words(text) == better
