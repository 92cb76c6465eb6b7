"""Training: from a system's configuration and a seed to a model folder. Needs PyTorch, `headway[train]`.

`config` says what is trained and how, `learner` is Stable-Baselines3's PPO on our environments, `loop` trains,
checks, saves and resumes, `validation` measures a policy on scenarios that it never trains on, `checkpoint` keeps
what a killed run goes on from, and `export` writes the model folder.
"""
