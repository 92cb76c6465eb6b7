"""Statistics over runs."""

from headway.stats.bootstrap import FEW, block_length, block_of_known, mean_interval
from headway.stats.ellipse import Ellipse, mean_ellipse
from headway.stats.median import median_interval
from headway.stats.share import share_difference_interval, share_interval, wilson_interval
from headway.stats.student import student_interval, welch_interval

__all__ = [
    "FEW",
    "Ellipse",
    "block_length",
    "block_of_known",
    "mean_ellipse",
    "mean_interval",
    "median_interval",
    "share_difference_interval",
    "share_interval",
    "student_interval",
    "welch_interval",
    "wilson_interval",
]
