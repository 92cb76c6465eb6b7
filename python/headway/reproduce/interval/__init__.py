"""The interval study: Naqvi, Hilman and Anggorojati 2023.

It has the paper's figures and tables, and what comes after them. "Fine Tuning of Interval
Configuration for Deep Reinforcement Learning Based Congestion Control".
"""

from headway.reproduce.figure import Paper
from headway.reproduce.interval import beyond, estimates, gap, network, summary

FIRST_SEED = 80001
"""Nothing was chosen by runs with seeds from this one on."""

PAPER = Paper(
    "interval",
    "The interval study",
    "Naqvi, Hilman and Anggorojati 2023",
    (*network.FIGURES, *summary.FIGURES, *estimates.FIGURES, *beyond.FIGURES, *gap.FIGURES),
    trained=("interval", "interval-learned"),
    first_seed=FIRST_SEED,
)
