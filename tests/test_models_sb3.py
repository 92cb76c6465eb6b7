"""The normalisation of VecNormalize becomes part of the network, without Stable-Baselines3."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from headway.envs import EnvConfig
from headway.models.sb3 import _folded, _normalised, _varied, _warn_of_constants

SAMPLES = 1_000_000
LOW, HIGH = np.full(3, -100.0), np.full(3, 100.0)


def normaliser_of(mean, std):
    """Statistics after this many samples, from 0.0001 samples of mean 0 and variance 1."""
    mean, count = np.asarray(mean), SAMPLES + 1e-4
    var = (np.asarray(std) ** 2 * SAMPLES + 1e-4 + mean**2 * 1e-4 * SAMPLES / count) / count
    return SimpleNamespace(obs_rms=SimpleNamespace(mean=mean, var=var, count=count), epsilon=1e-8, clip_obs=10.0)


def outputs_of(layers, seen):
    for weight, bias, activation in layers:
        seen = seen @ weight.T + bias
        seen = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, 0.0)}[activation](seen)
    return seen


@pytest.mark.parametrize("constant", [0.0, 0.3, 0.7, 40.0])
def test_an_input_that_never_varied_has_no_effect(constant):
    random = np.random.default_rng(3)
    layers = [(random.normal(size=(4, 3)), random.normal(size=4), "tanh")]
    normal = normaliser_of([constant, 1.0, -3.0], [0.0, 0.05, 2.0])
    folded = _folded(layers, normal, LOW, HIGH)
    seen = np.stack([np.full(50, constant), random.normal(1, 0.05, 50), random.normal(-3, 2, 50)], axis=1)
    shown = np.clip((seen - normal.obs_rms.mean) / np.sqrt(normal.obs_rms.var + 1e-8), -10, 10)
    assert outputs_of(folded, seen) == pytest.approx(outputs_of(layers, shown), abs=1e-9)
    other = seen + np.array([0.001, 0.0, 0.0])
    assert outputs_of(folded, other) == pytest.approx(outputs_of(folded, seen), abs=1e-12)


def test_an_input_that_varies_a_little_about_a_mean_keeps_its_effect():
    layers = [(np.ones((1, 3)), np.zeros(1), "tanh")]
    folded = _folded(layers, normaliser_of([10.0, 0.0, 0.0], [0.05, 1.0, 1.0]), LOW, HIGH)
    low, high = (outputs_of(folded, np.array([[value, 0.0, 0.0]]))[0, 0] for value in (9.95, 10.05))
    assert high - low > 1.0


def normaliser_that_shows(mean, std):
    """The network with the normalisation of observations."""
    known = normaliser_of(mean, std)

    def normalize_obs(seen):
        return np.clip((seen - known.obs_rms.mean) / np.sqrt(known.obs_rms.var + 1e-8), -10, 10)

    return SimpleNamespace(**vars(known), norm_obs=True, normalize_obs=normalize_obs)


def test_observations_beyond_those_of_training_give_the_same_outputs_in_the_folder():
    """A golden observation may vary in an input that was constant in a short training."""
    random = np.random.default_rng(5)
    layers = [(random.normal(size=(4, 3)), random.normal(size=4), "tanh")]
    normal = normaliser_that_shows([0.0, 1.0, -3.0], [0.0, 0.05, 2.0])
    seen = random.normal(size=(50, 3))
    shown = _normalised(seen, normal)
    assert outputs_of(_folded(layers, normal, LOW, HIGH), seen) == pytest.approx(
        outputs_of(layers, shown), abs=1e-9
    )
    assert shown[:, 1:] == pytest.approx(normal.normalize_obs(seen)[:, 1:])


def test_inputs_that_never_varied_are_named():
    config = EnvConfig.named("aurora-v1")
    names = [feature["name"] for feature in config.spec["observation"]["features"]]
    assert names == ["rtt_slope", "rtt_ratio", "send_ratio"]
    varied = _varied(normaliser_of(np.zeros(30), np.tile([1.0, 0.0, 2.0], 10)))
    with pytest.warns(UserWarning, match=r"10 of 30 inputs did not vary in training.*\(rtt_ratio\)"):
        _warn_of_constants(config, varied)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _warn_of_constants(config, np.ones(30, dtype=bool))
