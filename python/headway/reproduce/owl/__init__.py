"""Owl: Sacco, Flocco, Esposito and Marchetto, IEEE TNSM 2023; its figures by section.

It came first at INFOCOM 2021. "Partially Oblivious Congestion Control for the Internet via
Reinforcement Learning".
"""

from headway.reproduce.figure import Paper
from headway.reproduce.owl import buffer, design, duration, fairness, geni, knowledge, lte

PAPER = Paper(
    "owl",
    "Owl",
    "Sacco, Flocco, Esposito and Marchetto, INFOCOM 2021 and IEEE TNSM 2023",
    (
        *lte.FIGURES,
        *knowledge.FIGURES,
        *buffer.FIGURES,
        *fairness.FIGURES,
        *duration.FIGURES,
        *geni.FIGURES,
        *design.FIGURES,
    ),
    trained=("owl", "owl-loss"),
)
