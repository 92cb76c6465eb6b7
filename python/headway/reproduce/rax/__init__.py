"""Rax: Bachl, Zseby and Fabini 2019; its figures by section.

"TCP Rax: Deep Reinforcement Learning for Congestion Control".
"""

from headway.reproduce.figure import Paper
from headway.reproduce.rax import comparison, first, live, loss, resumed, senders, tradeoff
from headway.reproduce.rax.link import FIRST_SEED

PAPER = Paper(
    "rax",
    "Rax",
    "Bachl, Zseby and Fabini 2019",
    (
        *first.FIGURES,
        *live.FIGURES,
        *tradeoff.FIGURES,
        *senders.FIGURES,
        *resumed.FIGURES,
        *loss.FIGURES,
        *comparison.FIGURES,
    ),
    first_seed=FIRST_SEED,
    trained=("rax-pretrained",),
)
