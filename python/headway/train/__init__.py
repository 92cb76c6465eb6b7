"""Training: from a system's configuration and a seed to a model folder.

Needs PyTorch, `headway[train]`. `config` says what is trained and how, `learner` is
Stable-Baselines3's PPO on our environments, `loop` trains, checks, saves and resumes, `validation`
measures a policy on scenarios that it never trains on, `checkpoint` keeps the state from which a
killed run continues, and `export` writes the model folder.

`headway.train(...)` trains a model; `help(headway.api.train)` explains its arguments.

Example:
    >>> training = headway.train("quick", seed=2)
    >>> results = headway.bench(["cubic", *training.schemes], ["high-bdp"])
"""

import sys

from headway import Package

sys.modules[__name__].__class__ = Package
