"""Stable-Baselines3's PPO, as a system's configuration has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger, TensorBoardOutputFormat
from stable_baselines3.common.vec_env import VecEnvWrapper, VecNormalize
from torch.utils.tensorboard import SummaryWriter

from headway.train.networks import describe
from headway.train.sections import Ppo

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from stable_baselines3.common.vec_env import VecEnv
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

    from headway.train.config import TrainConfig
    from headway.train.stopwatch import Stopwatch


class PpoLearner:
    """PPO with a state that can be saved and put back, bit for bit.

    Trains in stretches. Each begins new episodes under a seed of its own, so that a learner put back at a
    stretch's end goes on as if nothing had happened.
    """

    def __init__(
        self,
        config: TrainConfig,
        environments: VecEnv,
        seed: int,
        watch: Stopwatch,
        on_rollout: Callable[[int, float], None],
    ) -> None:
        assert isinstance(config.algorithm, Ppo)
        self.config, self.seed, self._ppo = config, seed, config.algorithm
        self._stretches = 0
        self._inner = environments
        timed = _Counted(environments)
        self._rollout = _Rollout(timed, on_rollout)
        self._normaliser = (
            VecNormalize(timed, norm_obs=False, norm_reward=True, gamma=self._ppo.gamma, clip_reward=1e9)
            if self._ppo.normalise_rewards
            else None
        )
        self._environments: VecEnv = self._normaliser or timed
        self.ppo = self._build(watch)

    def _build(self, watch: Stopwatch) -> PPO:
        ppo, net = self._ppo, self.config.net
        total = self.config.stretches * self.config.stretch_steps

        def learning_rate(_: float) -> float:
            # Stable-Baselines3 knows the stretch's end, not the training's.
            return ppo.learning_rate * ((1.0 - model.num_timesteps / total) if ppo.anneal else 1.0)

        class Timed(PPO):
            def train(self) -> None:
                with watch.of("learning"):
                    super().train()

        layers = list(net.hidden)
        model = Timed(
            "MlpPolicy",
            self._environments,
            learning_rate=ppo.learning_rate,
            n_steps=ppo.steps,
            batch_size=ppo.minibatch,
            n_epochs=ppo.epochs,
            gamma=ppo.gamma,
            gae_lambda=ppo.gae_lambda,
            clip_range=ppo.clip,
            ent_coef=ppo.entropy,
            vf_coef=ppo.value,
            max_grad_norm=ppo.gradient_norm,
            policy_kwargs={
                "net_arch": {"pi": layers, "vf": layers},
                "activation_fn": {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}[net.activation],
                "log_std_init": float(np.log(ppo.initial_std)),
            },
            seed=self.seed,
            device="cpu",
        )
        model.lr_schedule = learning_rate
        # Forward passes of rollouts only: a learning step's are counted with it, as it calls another method.
        _time_calls(model.policy, watch, "forward")
        return model

    @property
    def steps(self) -> int:
        """Decisions so far."""
        return int(self.ppo.num_timesteps)

    def log_to(self, folder: Path, after: int) -> None:
        """TensorBoard's events go to `folder`; those of steps above `after`, of a killed run, are void."""
        folder.mkdir(parents=True, exist_ok=True)
        self.ppo.set_logger(Logger(str(folder), [_TensorBoard(folder, after)]))

    def log_scores(self, scores: Mapping[str, float], under: str) -> None:
        """For TensorBoard."""
        for name, value in scores.items():
            self.ppo.logger.record(f"{under}/{name}", value)
        self.ppo.logger.dump(self.steps)

    def stretch(self) -> float:
        """Trains until the next checkpoint; the mean reward of a decision meanwhile."""
        self._inner.seed(int(np.random.SeedSequence([self.seed, self._stretches]).generate_state(1)[0]))
        self.ppo.set_env(self._environments, force_reset=True)
        self._rollout.rewards = []
        self.ppo.learn(self.config.stretch_steps, callback=self._rollout, reset_num_timesteps=False)
        self._stretches += 1
        return float(np.mean(self._rollout.rewards))

    def act(self, observations: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """What the policy answers without chance: the Gaussian's mean within its limits, or the likeliest."""
        return np.asarray(self.ppo.policy.predict(observations, deterministic=True)[0])

    def weights(self) -> dict[str, torch.Tensor]:
        """A copy of the policy's weights, of the value function's too."""
        return {name: tensor.detach().clone() for name, tensor in self.ppo.policy.state_dict().items()}

    def load_weights(self, weights: dict[str, torch.Tensor]) -> None:
        """Takes weights that `weights` gave."""
        self.ppo.policy.load_state_dict(weights)

    def network(self) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
        """The policy's network as a card's `[net]`, and its tensors; the value function is not deployed."""
        policy = self.ppo.policy
        hidden = [module for module in policy.mlp_extractor.policy_net if isinstance(module, torch.nn.Linear)]
        return describe([*hidden, policy.action_net], self.config.net.activation)

    def outputs(self, observations: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """What that network puts out, as PyTorch computes it: `[n, outputs]`, a mean before any clipping."""
        policy = self.ppo.policy
        with torch.no_grad():
            features = torch.as_tensor(observations, dtype=torch.float32)
            return np.asarray(policy.action_net(policy.mlp_extractor.forward_actor(features)).numpy())

    def state(self) -> dict[str, Any]:
        """All that `restore` needs: tensors, numbers and lists."""
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

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on where `state` was taken."""
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
    """Sums rewards before they are normalised."""

    def __init__(self, environments: VecEnv) -> None:
        super().__init__(environments)
        self.reward, self.count = 0.0, 0

    def reset(self) -> VecEnvObs:
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        step = self.venv.step_wait()
        self.reward += float(np.mean(step[1]))
        self.count += 1
        return step


class _Rollout(BaseCallback):
    """Tells after each rollout how far training is."""

    def __init__(self, environments: _Counted, tell: Callable[[int, float], None]) -> None:
        super().__init__()
        self._of, self._tell = environments, tell
        self.rewards: list[float] = []

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        mean = self._of.reward / max(self._of.count, 1)
        self._of.reward, self._of.count = 0.0, 0
        self.rewards.append(mean)
        self.logger.record("rollout/reward", mean)
        self._tell(self.num_timesteps, mean)


class _TensorBoard(TensorBoardOutputFormat):
    """As Stable-Baselines3's, and events of a run that was killed after its last checkpoint are void."""

    def __init__(self, folder: Path, after: int) -> None:
        self.writer = SummaryWriter(log_dir=str(folder), purge_step=after + 1)
        self._is_closed = False


def _time_calls(module: torch.nn.Module, watch: Stopwatch, part: str) -> None:
    running: list[Any] = []

    def before(*_: object) -> None:
        running.append(watch.of(part))
        running[-1].__enter__()

    def after(*_: object) -> None:
        running.pop().__exit__(None, None, None)

    module.register_forward_pre_hook(before)
    module.register_forward_hook(after)
