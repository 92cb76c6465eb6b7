"""Distilling.

It tests integers as the C of `nets.h` computes them, gradients, and a whole distillation.
"""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from headway._native import UsageError
from headway.cli.app import run as headway
from headway.distill import whole
from headway.distill.run import Plan, distill
from headway.distill.student import SIZES, Student
from headway.distill.teacher import Teacher
from headway.models import load, write
from headway.models.to_onnx import export

FEATURES = load("aurora-v2").card["agent"]["observation"]["features"]


def random_tensors(random):
    tensors = {}
    for n, (inputs, units) in enumerate(pairwise(SIZES)):
        tensors[f"layers.{n}.weight"] = random.integers(-128, 128, (units, inputs)).astype(np.int8)
        tensors[f"layers.{n}.bias"] = random.integers(-(2**17), 2**17, units).astype(np.int32)
    tensors["multipliers"] = random.integers(2**23, 2**24, 3).astype(np.int32)
    # Hidden units reach both ends and values between. Outputs are few enough to be exact in
    # float32.
    tensors["shifts"] = random.integers([32, 32, 23], [34, 34, 26]).astype(np.int32)
    return tensors


def model(folder, tensors, change=0, wrong=None):
    """A folder whose golden outputs NumPy computed, with one off by `change` in 1/65536.

    `wrong` tensors can replace others.
    """
    agent = dict(load("aurora-v2").card["agent"])
    agent["observation"] = agent["observation"] | {"history": 6}
    inputs = np.random.default_rng(7).integers(0, 256, (512, 30)).astype(np.uint8)
    outputs = whole.run(tensors, inputs)
    assert np.abs(outputs).max() < 2**24
    outputs[-1] += change
    card = {"name": "random", "version": 1, "net": {"kind": "int8", "layers": list(SIZES)}, "agent": agent}
    golden = whole.to_observations(inputs, FEATURES), outputs[:, np.newaxis] / whole.UNIT
    return write(folder, card, tensors | (wrong or {}), golden)


def test_numpy_and_the_c_of_the_kernel_compute_the_same_bits(tmp_path):
    for seed in range(20):
        tensors = random_tensors(np.random.default_rng(seed))
        model(tmp_path / f"random-{seed}", tensors)
    # A single step of an output is too much.
    with pytest.raises(UsageError, match="row 511: outputs"):
        model(tmp_path / "off", tensors, change=1)


def test_tensors_of_another_type_or_out_of_range_are_refused_in_one_line(tmp_path):
    tensors = random_tensors(np.random.default_rng(1))
    for name, wrong, says in [
        ("layers.1.weight", tensors["layers.1.weight"].astype(np.float32), "is F32"),
        ("layers.1.bias", tensors["layers.1.bias"][:1], r"\[1\], must be I32 \[16\]"),
        ("shifts", np.array([1, 2, 64], np.int32), "64 must be from 0 to 63"),
        ("multipliers", np.array([1, -2, 3], np.int32), "-2 must be from 0 to 16777215"),
    ]:
        with pytest.raises(UsageError, match=says) as refused:
            model(tmp_path / "wrong", tensors, wrong={name: wrong})
        assert "\n" not in str(refused.value)


def test_inputs_are_steps_between_the_limits_of_a_clip():
    observations = np.tile(np.array([-2.0, -1.0, 5.0, 1.0, 0.5], np.float32), 6)[np.newaxis]
    inputs = whole.to_inputs(observations, FEATURES)
    assert inputs[0, :5].tolist() == [0, 0, 255, 128, 128]
    every = np.arange(256)[:, np.newaxis].repeat(30, axis=1).astype(np.uint8)
    assert (whole.to_inputs(whole.to_observations(every, FEATURES), FEATURES) == every).all()


def test_the_student_computes_the_same_integers_while_it_learns():
    random = np.random.default_rng(3)
    inputs = random.integers(0, 256, (2000, 30)).astype(np.uint8)
    student = Student(1, inputs.astype(np.float32) / 255)
    floating = student.forward(inputs.astype(np.float32) / 255)
    outputs = whole.run(whole.quantise(student), inputs) / whole.UNIT
    # A hidden unit at the edge of a step may round to either side.
    assert np.abs(outputs - floating).max() < 0.05 * floating.std()
    assert np.sqrt(np.mean((outputs - floating) ** 2)) < 0.005 * floating.std()


def test_gradients_match_finite_differences():
    """The gradients are those of the network without rounding, because they pass through it."""
    random = np.random.default_rng(5)
    inputs = random.random((64, 30)).astype(np.float64)
    answers = random.normal(size=64)
    student = Student(2, inputs)
    student.weights = [weight.astype(np.float64) for weight in student.weights]
    student.biases = [bias.astype(np.float64) for bias in student.biases]

    def loss():
        x = inputs - inputs.mean(axis=0)
        for n, (weight, bias) in enumerate(zip(student.weights, student.biases, strict=True)):
            x = x @ weight.T + bias
            x = x if n == 2 else np.clip(x, 0, 1)
        return 0.5 * np.mean((x[:, 0] - answers) ** 2)

    gradients = student._gradients(inputs, answers)
    for parameter, gradient in zip([*student.weights, *student.biases], gradients, strict=True):
        direction = random.normal(size=parameter.shape)
        before = parameter.copy()
        parameter[...] = before + 1e-6 * direction
        above = loss()
        parameter[...] = before - 1e-6 * direction
        slope = (above - loss()) / 2e-6
        parameter[...] = before
        # Weights and hidden units are rounded in one and not in the other.
        assert abs((gradient * direction).sum() - slope) < 0.05 * np.linalg.norm(gradient) * np.sqrt(direction.size)


def test_a_student_learns():
    random = np.random.default_rng(9)
    inputs = random.random((4000, 30)).astype(np.float32)
    answers = (2 * inputs[:, 0] - inputs[:, 29] + np.abs(inputs[:, 7] - 0.5)).astype(np.float32)
    student = Student(1, inputs)
    student.fit(inputs, answers, steps=2000, rate=3e-3, batch=256, tell=lambda _: None)
    assert np.mean((student.forward(inputs) - answers) ** 2) < 0.01 * answers.var()


class Quiet:
    def __init__(self):
        self.units, self.lines = 0.0, []

    def advance(self, units):
        self.units += units

    def line(self, text):
        self.lines.append(text)


def small(folder):
    """A distillation of some seconds, on generated networks only."""
    teacher = Teacher("aurora")
    teacher.config["env"] = {"scenarios": ["aurora-training-wide"], "steps": 200, "initial_rate": [0.1, 1.2]}
    teacher.config["validation"] = {"scenarios": ["rax-1"], "runs": 1, "seconds": 10}
    plan, screen = Plan(rounds=2, environments=32, decisions=60, steps=300, last_steps=600), Quiet()
    done = distill(teacher, plan, folder, version=3, seed=4, command="headway distill", screen=screen)
    assert round(screen.units) == plan.total
    assert len(screen.lines) == plan.rounds
    return done


def test_the_same_seed_distils_the_same_model(tmp_path):
    done = small(tmp_path / "one")
    assert done.error < 0.8 * done.spread
    assert small(tmp_path / "two").id == done.id
    for name in ("weights.safetensors", "golden.npz"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    made = load(tmp_path / "one")
    assert (made.title, made.net, made.golden_error) == ("aurora-int8-v3", "int8 30-32-16-1", 0)
    assert made.parameters == 30 * 32 + 32 * 16 + 16 + 49 + 6
    training = made.card["training"]
    assert training["teacher"] == load("aurora-v2").id
    assert training["seeds"] == [4]
    assert all(name.startswith("aurora-training-wide") for name in training["scenarios"])
    with pytest.raises(UsageError, match="exists already"):
        small(tmp_path / "one")
    with pytest.raises(UsageError, match="an int8 network has no ONNX graph"):
        export(made)


def test_wrong_usage_gives_a_one_line_error(capsys, tmp_path):
    for arguments, says in [
        (["distill", "owl-v1"], "no multilayer perceptron with one continuous action"),
        (["distill", "aurorra"], "no such model"),
        (["distill", "aurora", "--to", "int16"], "nearest is int8"),
        (["distill", "aurora", "--out", str(tmp_path)], "exists already"),
    ]:
        assert headway(arguments) == 2
        error = capsys.readouterr().err
        assert says in error
        assert error.count("\n") == 1


def test_the_shipped_model_records_how_it_was_made(capsys):
    assert headway(["models", "show", "aurora-int8-v1", "--json"]) == 0
    card = json.loads(capsys.readouterr().out)
    assert card["training"]["command"].startswith("headway distill aurora-v2 --to int8")
    assert Path(__file__).parent.joinpath("../models/aurora-int8-v1/card.toml").exists()
