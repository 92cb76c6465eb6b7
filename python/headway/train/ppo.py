"""Stable-Baselines3's PPO and A2C, as a system's configuration has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger, TensorBoardOutputFormat
from stable_baselines3.common.vec_env import VecEnvWrapper, VecNormalize
from torch.utils.tensorboard import SummaryWriter

from headway.train.elapsed import Bootstrapped, Elapsed, ElapsedBuffer, ElapsedNormalize
from headway.train.networks import ACTIVATIONS, begin_with, describe, policy_layers
from headway.train.sections import A2c, Ppo

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from stable_baselines3.common.vec_env import VecEnv
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

    from headway.models.net import NetCard
    from headway.train.checkpoint import State
    from headway.train.config import TrainConfig
    from headway.train.stopwatch import Stopwatch


class PpoLearner:
    """PPO or A2C, whose state can be saved and restored, bit for bit.

    It trains in stretches. Each begins new episodes under a seed of its own, so that a learner
    restored at a stretch's end continues bit for bit.
    """

    def __init__(
        self,
        config: TrainConfig,
        environments: VecEnv,
        seed: int,
        watch: Stopwatch,
        on_rollout: Callable[[int, float], None],
    ) -> None:
        assert isinstance(config.algorithm, Ppo | A2c)
        self.config, self.seed, self._ppo = config, seed, config.algorithm
        self._stretches = 0
        self._inner = environments
        counted = _Counted(environments, by_time=self._ppo.elapsed)
        self._rollout = _Rollout(counted, on_rollout)
        self._clock = Elapsed(counted, self._ppo.gamma) if self._ppo.elapsed else None
        self._normaliser = self._normalise(counted) if self._ppo.normalise_rewards else None
        self._environments: VecEnv = self._normaliser or self._clock or counted
        if self._clock:
            self._environments = Bootstrapped(self._environments, self._clock)
        self.ppo = self._build(watch)

    def _normalise(self, environments: VecEnv) -> VecNormalize:
        asked = {"norm_obs": False, "norm_reward": True, "clip_reward": 1e9}
        if self._clock:
            return ElapsedNormalize(self._clock, self._clock, **asked)
        return VecNormalize(environments, gamma=self._ppo.gamma, **asked)

    def _build(self, watch: Stopwatch) -> PPO | A2C:
        ppo, net = self._ppo, self.config.net
        total = self.config.stretches * self.config.stretch_steps

        def learning_rate(_: float) -> float:
            # Stable-Baselines3 knows the stretch's end, but not the training's.
            return ppo.learning_rate * ((1.0 - model.num_timesteps / total) if ppo.anneal else 1.0)

        algorithm: type[PPO] | type[A2C] = A2C
        own: dict[str, float] = {}
        if isinstance(ppo, Ppo):
            algorithm = PPO
            own = {"batch_size": ppo.minibatch, "n_epochs": ppo.epochs, "clip_range": ppo.clip}

        class Timed(algorithm):  # type: ignore[misc, valid-type]
            def train(self) -> None:
                with watch.of("learning"):
                    super().train()

        layers = list(net.hidden)
        model: PPO | A2C = Timed(
            "MlpPolicy",
            self._environments,
            learning_rate=ppo.learning_rate,
            n_steps=ppo.steps,
            gamma=ppo.gamma,
            gae_lambda=ppo.gae_lambda,
            **own,
            ent_coef=ppo.entropy,
            vf_coef=ppo.value,
            max_grad_norm=ppo.gradient_norm,
            policy_kwargs={
                "net_arch": {"pi": layers, "vf": layers},
                "activation_fn": ACTIVATIONS[net.activation],
                "log_std_init": float(np.log(ppo.initial_std)),
            },
            rollout_buffer_class=ElapsedBuffer if self._clock else None,
            rollout_buffer_kwargs={"clock": self._clock} if self._clock else None,
            seed=self.seed,
            device="cpu",
        )
        policy = model.policy
        if net.begin:
            agent = self.config.environment["agent"]
            begin_with(policy_layers(policy), net.begin_of(self.seed), agent, net.activation, net.output)
        if net.output == "tanh":
            policy.action_net = torch.nn.Sequential(policy.action_net, torch.nn.Tanh())
        if isinstance(self._environments, Bootstrapped):
            self._environments.value = lambda seen: _values(policy, seen)
        model.lr_schedule = learning_rate
        # Counts only the forward passes of rollouts. Those of a learning step are counted with it,
        # because it calls another method.
        _time_calls(model.policy, watch, "forward")
        return model

    @property
    def steps(self) -> int:
        """Number of decisions so far."""
        return int(self.ppo.num_timesteps)

    def log_to(self, folder: Path, after: int) -> None:
        """Sends TensorBoard's events to `folder`.

        Those of steps above `after`, of a killed run, become void.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.ppo.set_logger(Logger(str(folder), [_TensorBoard(folder, after)]))

    def log_scores(self, scores: Mapping[str, float], under: str) -> None:
        """Logs scores for TensorBoard."""
        for name, value in scores.items():
            self.ppo.logger.record(f"{under}/{name}", value)
        self.ppo.logger.dump(self.steps)

    def stretch(self) -> float:
        """Trains until the next checkpoint.

        Returns the mean reward meanwhile, weighted as validation weights it.
        """
        self._inner.seed(int(np.random.SeedSequence([self.seed, self._stretches]).generate_state(1)[0]))
        self.ppo.set_env(self._environments, force_reset=True)
        self._rollout.earned = self._rollout.weight = 0.0
        self.ppo.learn(self.config.stretch_steps, callback=self._rollout, reset_num_timesteps=False)
        self._stretches += 1
        return self._rollout.earned / self._rollout.weight

    def act(self, observations: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Returns the policy's action without randomness.

        It is the Gaussian's mean within its limits, or the likeliest action.
        """
        return np.asarray(self.ppo.policy.predict(observations, deterministic=True)[0])

    def weights(self) -> dict[str, torch.Tensor]:
        """Returns a copy of the policy's weights, with the value function's."""
        return {name: tensor.detach().clone() for name, tensor in self.ppo.policy.state_dict().items()}

    def load_weights(self, weights: dict[str, torch.Tensor]) -> None:
        """Takes weights that `weights` returned."""
        self.ppo.policy.load_state_dict(weights)

    def network(self) -> tuple[NetCard, dict[str, np.ndarray[Any, Any]]]:
        """Returns the policy's network as a card's `[net]`, and its tensors.

        The value function is not deployed.
        """
        net = self.config.net
        return describe(policy_layers(self.ppo.policy), net.activation, net.output)

    def outputs(self, observations: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Returns the outputs of that network, as PyTorch computes them.

        They are `[n, outputs]`, a mean before any clipping.
        """
        policy = self.ppo.policy
        with torch.no_grad():
            features = torch.as_tensor(observations, dtype=torch.float32)
            return np.asarray(policy.action_net(policy.mlp_extractor.forward_actor(features)).numpy())

    def state(self) -> State:
        """Returns all that `restore` needs: tensors, numbers and lists."""
        # Stable-Baselines3 shuffles with NumPy's global generator.
        random = np.random.get_state(legacy=False)  # noqa: NPY002
        normaliser = self._normaliser.ret_rms if self._normaliser else None
        return {
            "weights": self.ppo.policy.state_dict(),
            "optimiser": self.ppo.policy.optimizer.state_dict(),
            "torch_random": torch.get_rng_state(),
            "numpy_random": {
                **random,
                "state": {"key": random["state"]["key"].tolist(), "pos": random["state"]["pos"]},
            },
            "steps": self.steps,
            "updates": self.ppo._n_updates,
            "stretches": self._stretches,
            "rewards": normaliser and [float(normaliser.mean), float(normaliser.var), float(normaliser.count)],
        }

    def restore(self, state: State) -> None:
        """Continues from where `state` was taken."""
        self.ppo.policy.load_state_dict(state["weights"])
        self.ppo.policy.optimizer.load_state_dict(state["optimiser"])
        torch.set_rng_state(state["torch_random"])
        np.random.set_state(state["numpy_random"])  # noqa: NPY002
        self.ppo.num_timesteps = state["steps"]
        self.ppo._n_updates = state["updates"]
        self._stretches = state["stretches"]
        if self._normaliser:
            rewards = self._normaliser.ret_rms
            rewards.mean, rewards.var, rewards.count = (np.float64(x) for x in state["rewards"])


class _Counted(VecEnvWrapper):
    """Sums rewards before they are normalised.

    `by_time` weights them as validation does, else all count alike.
    """

    def __init__(self, environments: VecEnv, *, by_time: bool) -> None:
        super().__init__(environments)
        self.by_time = by_time
        self.earned = self.weight = 0.0

    def reset(self) -> VecEnvObs:
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        step = self.venv.step_wait()
        measured: Any = self.venv.measured if self.by_time else {"dt_s": np.ones(self.num_envs)}
        self.earned += float((step[1] * measured["dt_s"]).sum())
        self.weight += float(measured["dt_s"].sum())
        return step


class _Rollout(BaseCallback):
    """Reports after each rollout how far training is."""

    def __init__(self, environments: _Counted, tell: Callable[[int, float], None]) -> None:
        super().__init__()
        self._of, self._tell = environments, tell
        self.earned = self.weight = 0.0
        """Sums of the current stretch."""

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        mean = self._of.earned / self._of.weight
        self.earned, self.weight = self.earned + self._of.earned, self.weight + self._of.weight
        self._of.earned = self._of.weight = 0.0
        self.logger.record("rollout/reward", mean)
        self._tell(self.num_timesteps, mean)


class _TensorBoard(TensorBoardOutputFormat):
    """A callback as Stable-Baselines3's, which also makes old events void.

    These come from a run that was killed after its last checkpoint.
    """

    def __init__(self, folder: Path, after: int) -> None:
        self.writer = SummaryWriter(log_dir=str(folder), purge_step=after + 1)
        self._is_closed = False


def _values(policy: Any, observations: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns the value function's estimates for observations `[n, observation]`."""
    with torch.no_grad():
        return np.asarray(policy.predict_values(policy.obs_to_tensor(observations)[0]).numpy()[:, 0])


def _time_calls(module: torch.nn.Module, watch: Stopwatch, part: str) -> None:
    running: list[Any] = []

    def before(*_: object) -> None:
        running.append(watch.of(part))
        running[-1].__enter__()

    def after(*_: object) -> None:
        running.pop().__exit__(None, None, None)

    module.register_forward_pre_hook(before)
    module.register_forward_hook(after)
