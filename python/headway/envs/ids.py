"""The environments that Gymnasium knows by id."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium

from headway._native import UsageError
from headway.envs.config import MOST_STEPS, EnvConfig
from headway.envs.single import HeadwayEnv
from headway.envs.vector import HeadwayVectorEnv, whole
from headway.text import nearest

if TYPE_CHECKING:
    from collections.abc import Container

IDS = {
    "headway/Aurora-v1": "aurora-v1",
    "headway/AuroraWide-v0": "aurora-wide",
    "headway/Owl-v0": "owl",
    "headway/Interval-v1": "interval",
    "headway/Period-v0": "period",
}
"""The configuration's name of every id. A version counts up when the numbers change."""


def config_of(config: str | Path | EnvConfig) -> EnvConfig:
    """Returns a configuration.

    `config` may be a loaded one, a TOML file, or the name or id of one that comes with Headway. A
    text that begins with headway/ is an id. Any other text that ends in .toml or has a slash is a
    file. Raises UsageError.
    """
    if isinstance(config, EnvConfig):
        return config
    if isinstance(config, str) and config in IDS:
        return EnvConfig.named(IDS[config])
    if isinstance(config, str) and config.startswith("headway/") and not Path(config).exists():
        raise UsageError(f"no environment '{config}'{nearest(config, IDS)}; ids are {', '.join(IDS)}")
    if isinstance(config, Path) or config.endswith(".toml") or "/" in config:
        return EnvConfig.load(config)
    return EnvConfig.named(config)


def make(config: str | Path | EnvConfig, **options: Any) -> HeadwayEnv:
    """Makes the single environment of a configuration, with the options of `HeadwayEnv`.

    The configuration is as `config_of` takes it.
    """
    return HeadwayEnv(config_of(config), **options)


# Where Gymnasium looks for the render modes.
make.metadata = HeadwayEnv.metadata  # type: ignore[attr-defined]


def make_vec(
    config: str | Path | EnvConfig,
    num_envs: int = 1,
    *,
    max_episode_steps: int | None = None,
    **options: Any,
) -> HeadwayVectorEnv:
    """Makes the vector environment of a configuration, as `config_of` takes it.

    Its episodes end after at most `max_episode_steps`. `options` are those of `HeadwayVectorEnv`,
    such as `autoreset_mode`. Raises UsageError.
    """
    known = config_of(config)
    if max_episode_steps is not None:
        max_episode_steps = whole("max_episode_steps", max_episode_steps, 1, MOST_STEPS)
        known = replace(known, steps=min(max_episode_steps, known.steps or max_episode_steps))
    return HeadwayVectorEnv(known, num_envs, **options)


def register(known: Container[str]) -> None:
    """Makes every id known to Gymnasium, once."""
    for name, config in IDS.items():
        if name not in known:
            gymnasium.register(
                id=name,
                entry_point="headway.envs.ids:make",
                vector_entry_point="headway.envs.ids:make_vec",
                kwargs={"config": config},
                # Only the environment's own seeds order simulated flows.
                nondeterministic=False,
            )
