"""The BBR tuner: Ketabi, Chen, Dong and Ganjali; its figures by section.

"A Deep Reinforcement Learning Framework for Optimizing Congestion Control in Data Centers".
"""

from headway.reproduce.bbr_tuning import agents, epochs, faults, fixed, joining, live
from headway.reproduce.bbr_tuning.path import FIRST_SEED, TUNED
from headway.reproduce.figure import Paper

PAPER = Paper(
    "bbr-tuning",
    "The BBR tuner",
    "Ketabi, Chen, Dong and Ganjali",
    (*faults.FIGURES, *epochs.FIGURES, *joining.FIGURES, *fixed.FIGURES, *agents.FIGURES, *live.FIGURES),
    trained=tuple(TUNED.values()),
    first_seed=FIRST_SEED,
)
