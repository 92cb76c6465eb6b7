"""Environments to train congestion control in.

They are for Gymnasium, Stable-Baselines3 (`sb3`) and PettingZoo (`flows`). `gymnasium.make(ID)` and
`gymnasium.make_vec(ID, num_envs=N)` know every id of `IDS` once this module is imported.
docs/environments.md describes them.
"""

from headway._native import UsageError
from headway.extras import install

try:
    import gymnasium
except ImportError as error:
    raise UsageError(f"Gymnasium is not installed; install it: {install('envs')}") from error

from headway.envs.config import EnvConfig
from headway.envs.ids import IDS, make, make_vec, register
from headway.envs.measurements import COLUMNS, Measurements
from headway.envs.rewards import REWARDS, Function, Reward
from headway.envs.single import HeadwayEnv
from headway.envs.vector import ENDS, HeadwayVectorEnv

__all__ = [
    "COLUMNS",
    "ENDS",
    "IDS",
    "REWARDS",
    "EnvConfig",
    "Function",
    "HeadwayEnv",
    "HeadwayVectorEnv",
    "Measurements",
    "Reward",
    "make",
    "make_vec",
]

register(gymnasium.registry)
