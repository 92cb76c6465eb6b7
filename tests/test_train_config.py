"""The errors of `headway train` for wrong configurations, and the shipped configurations.

The tests need no PyTorch.
"""

import codecs
import importlib.util
import json
import re
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

from headway import RunError, UsageError, ending
from headway.cli import train as cli
from headway.cli.app import app
from headway.envs.config import EnvConfig
from headway.reproduce.owl.design import BASE
from headway.train import ablation, config, scenarios
from headway.train import run as trainings
from headway.train.stopwatch import Stopwatch

QUICK = config.systems()["quick"].read_text()
SCENARIOS = Path(__file__).parents[1] / "scenarios"


def trained_in(model, system, seed):
    """A finished training, with the fields that are printed for several."""
    return trainings.Trained(model, system, seed, 1, 1, 0.5, [], [], 1.0, 1.0, {}, "rax-1")


@pytest.mark.parametrize("system", config.systems())
def test_systems_are_in_order_and_validate_on_scenarios_outside_training(system):
    found = config.find(system, None)
    assert found.model in (system, f"{system}-v1")
    scenarios.check(found)


@pytest.mark.parametrize("study", ["aurora", "interval", "lte", "owl"])
def test_scenarios_made_for_training_are_of_some_system(study):
    """A scenario that no system uses is left over, or misspelt in a system."""
    found = [config.find(system, None) for system in config.systems()]
    named = {name for one in found for name in (*scenarios.trained_on(one), *one.validation.scenarios)}
    made = {file.stem for what in ("training", "validation") for file in SCENARIOS.glob(f"{study}-{what}*.toml")}
    assert made
    assert made <= {name.partition(":")[0] for name in named}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"cellular-static-flat"', '"aurora-training-wide"', ["aurora-training-wide", "trained on", "[env]"]),
        ('"cellular-static-flat"', '"celular-static-flat"', ["celular-static-flat", "cellular-static-flat"]),
    ],
)
def test_training_scenarios_do_not_choose_the_weights(old, new, says):
    assert old in QUICK
    with pytest.raises(UsageError) as caught:
        scenarios.check(config.parse(QUICK.replace(old, new), "my.toml"))
    assert all(word in str(caught.value) for word in says), caught.value


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[ppo]", "[pop]", ["unknown key 'pop'", "nearest is ppo"]),
        ("gamma =", "gama =", ["[ppo]", "gama", "nearest is gamma"]),
        ("gamma = 0.99", "gamma = 1.5", ["gamma is 1.5", "from 0 to 1"]),
        ("gamma = 0.99", "gamma = nan", ["gamma is nan", "from 0 to 1"]),
        ("gamma = 0.99", 'gamma = "high"', ["gamma is 'high'", "must be a number"]),
        ("minibatch = 2048", "minibatch = 1000", ["minibatch is 1000", "must divide"]),
        ("environments = 128", "environments = 0", ["environments is 0", "at least 1"]),
        ("environments = 128", "environments = 100_000", ["environments is 100000", "at most 65536"]),
        ("hidden = [32, 16]", "hidden = []", ["[net]", "hidden"]),
        ('activation = "tanh"', 'activation = "tan"', ["'tan'", "tanh or relu"]),
        ("version = 1", 'version = "one"', ["version is 'one'", "whole number"]),
        ("[net]", "[nets]", ["unknown key 'nets'", "nearest is net"]),
        ("[net]", "[net", ["not TOML"]),
        ("every = ", "every = 0\n#", ["[validation]", "every"]),
        ("[ppo]", "[dqn]", ["[dqn]", "unknown key"]),
        ("[ppo]", "[dqn]\n[ppo]", ["has [ppo] and [dqn]", "must have one"]),
        ("gamma = 0.99", "gamma = 1\nelapsed = true", ["[ppo]", "gamma is 1", "below 1 with elapsed"]),
        ('kind = "rtt"', 'kind = "chosen"', ["[agent.clock] chosen goes with [ppo] elapsed = true"]),
        ("[ppo]", "[net.mask]\nfeatures = 3\nknown = 2\nmasked = [0]\n[ppo]", ["[net.mask] goes with [dqn]"]),
    ],
)
def test_a_wrong_configuration_gives_a_one_line_error(old, new, says):
    assert old in QUICK
    with pytest.raises(UsageError) as caught:
        config.parse(QUICK.replace(old, new, 1), "my.toml")
    message = str(caught.value)
    assert message.startswith("my.toml: ")
    assert "\n" not in message
    for word in says:
        assert word in message


OWL = config.systems()["owl-v1"].read_text()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("masked = [9, 10]", "masked = [9, 20]", ["[net]: mask", "20 is no feature", "19"]),
        ("masked = [9, 10]", "masked = [9, 11]", ["none of them known"]),
        ("masked = [9, 10]", 'masked = ["pna"]', ["masked is 'pna'", "whole number"]),
        ("epsilon = [", "epsilon = [0.5, ", ["two shares from 0 to 1"]),
        ("returns = ", "returns = 1000 #", ["returns is 1000", "warmup"]),
        ("memory = ", "memory = 1000 #", ["memory is 1000", "at least"]),
        ("reward_scale", "reward_scale = 0 #", ["reward_scale is 0"]),
        ("share = [", "share = [1.5, ", ["[dqn]: guide", "share is", "two numbers from 0 to 1"]),
        ("rounds = ", "rounds = 0 #", ["rounds is 0, must be at least 1"]),
        ("packets = ", "packets = -1 #", ["packets is -1"]),
        ("hidden = ", 'output = "tanh"\nhidden = ', ["[net] begin and output go with [ppo]"]),
        ("hidden = ", 'begin = "owl-v1"\nhidden = ', ["[net] begin and output go with [ppo]"]),
        ('kind = "jiffies"', 'kind = "chosen"', ["[agent.clock] chosen goes with [ppo]"]),
    ],
)
def test_a_wrong_q_learner_gives_a_one_line_error(old, new, says):
    text = OWL if old in OWL else OWL.replace("[dqn]", f"[dqn]\n{old}")
    with pytest.raises(UsageError) as caught:
        config.parse(text.replace(old, new, 1), "my.toml")
    message = str(caught.value)
    assert "\n" not in message
    for word in says:
        assert word in message


@pytest.mark.parametrize("name", ablation.names("owl"))
def test_ablations_change_only_a_part_of_the_system(name):
    changed, system = ablation.find("owl", name), config.find("owl-v1", None)
    EnvConfig.of(changed.environment)
    assert changed.model == f"owl-{name}-v1".replace(".", "")
    assert changed.asked == f"owl --ablation {name}"
    # The stored card trains the same model again.
    kept = config.parse(changed.text, "its card")
    assert (kept.algorithm, kept.net, kept.environment) == (changed.algorithm, changed.net, changed.environment)
    assert changed.algorithm.total_steps < system.algorithm.total_steps * 2
    parts = [(changed.environment[key], system.environment[key]) for key in ("agent", "reward")] + [
        (changed.net, system.net),
        (getattr(changed.algorithm, "guide", None), system.algorithm.guide),
    ]
    # Figures compare the others with the one that differs only in its budget.
    assert all(one == other for one, other in parts) == (name == BASE)
    assert changed.hash != system.hash


def test_action_1_adds_and_multiplies():
    changed = ablation.find("owl", "action-1").environment
    steps = ["+0", "-10", "+10", "*2", "/2"]
    assert changed["agent"]["action"] == {"kind": "steps", "choices": steps}
    assert EnvConfig.of(changed).choices() == len(steps)


def test_the_control_of_the_learned_interval_differs_in_its_clock_alone():
    changed, system = ablation.find("interval-learned", "fixed-interval"), config.find("interval-learned-v1", None)
    clock = changed.environment["agent"].pop("clock")
    assert (clock, system.environment["agent"].pop("clock")["kind"]) == (
        {"kind": "rtt", "n": 1.0, "estimator": "ewma"},
        "chosen",
    )
    for what in ("environment", "net", "algorithm", "validation", "early_stop"):
        assert getattr(changed, what) == getattr(system, what)


def test_all_ablations_are_trained_with_each_seed(tmp_path, monkeypatch, capsys):
    from headway.cli.app import run as command

    trained = []

    def stand_in(chosen, where, seed, _):
        trained.append((chosen.model, where, seed))
        return trained_in(where / "m", chosen.model, seed)

    monkeypatch.setattr(trainings, "need_pytorch", lambda: None)
    monkeypatch.setattr(trainings, "train_one", stand_in)
    asked = ["train", "interval-learned", "--ablation", "all", "--seeds", "1-2", "--out", str(tmp_path)]
    assert command([*asked, "--json"]) == 0
    names = ablation.names("interval-learned")
    models = [f"interval-learned-{name}-v1" for name in names]
    assert trained == [(model, tmp_path / f"{model}-seed-{seed}", seed) for seed in (1, 2) for model in models]
    found = json.loads(capsys.readouterr().out)
    assert len(found["trainings"]) == 2 * len(names)
    scheme = f"learned:model={tmp_path}/{models[0]}-seed-1/m:model={tmp_path}/{models[0]}-seed-2/m"
    assert (found.get("schemes") or {models[0]: found["scheme"]})[models[0]] == scheme
    assert command(asked) == 0
    assert f"{models[0]}, seed 2: {tmp_path}/{models[0]}-seed-2/m, validation 0.500" in capsys.readouterr().out


def test_an_unknown_ablation_names_the_nearest(run):
    for asked, says in [
        (("owl", "--ablation", "no-masks"), "nearest is no-mask"),
        (("aurora", "--ablation", "no-mask"), "'aurora' has none; give interval-learned or owl as SYSTEM\n"),
        (("owl", "--ablation", "no-mask", "--config", "x.toml"), "give one of them"),
    ]:
        done = run("train", *asked)
        assert done.returncode == 2
        assert says in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_missing_section_is_named():
    with pytest.raises(UsageError, match="'validation' is missing"):
        config.parse(QUICK.partition("[ppo]")[0], "my.toml")


def test_an_unknown_system_names_the_nearest(run):
    done = run("train", "quik")
    assert done.returncode == 2
    assert "quick" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is installed here")
def test_without_pytorch_one_line_says_how_to_get_it(run):
    done = run("train", "quick")
    assert done.returncode == 1
    assert done.stderr.startswith(
        "headway: training needs PyTorch; in the folder of Headway's sources: pip install '.[train]' "
    )
    assert done.stderr.count("\n") == 1


def test_the_last_stretch_is_complete():
    found = config.parse(QUICK.replace("total_steps = ", "total_steps = 1 #", 1), "my.toml")
    assert found.stretches == 1
    assert found.stretch_steps == found.validation.every * found.algorithm.environments * found.algorithm.steps


def test_shares_of_time_add_up_to_one():
    watch = Stopwatch(wall_s=10.0)
    watch.parts |= {"simulator": 6.0, "forward": 1.0}
    shares = watch.shares()
    assert shares["simulator"] == pytest.approx(0.6)
    assert shares["glue"] == pytest.approx(0.3)
    assert sum(shares.values()) == pytest.approx(1.0)


def test_an_obviously_wrong_trace_is_named_before_training(tmp_path):
    (tmp_path / "epoch.down").write_text("1700000000\n1700000060\n")
    own = tmp_path / "own.toml"
    own.write_text(
        'schema = 1\nname = "own"\nseconds = 2\n[bottleneck]\ntrace = "./epoch.down"\n'
        'delay = "5ms"\nqueue = "20pkt"\n'
    )
    mine = tmp_path / "quick.toml"
    mine.write_text(QUICK.replace('"pantheon-default"', f'"{own}"'))
    (doubt,) = scenarios.doubts(config.find("quick", mine))
    assert "epoch.down: it begins with 19.7 days without a packet" in doubt
    assert not scenarios.doubts(config.find("quick", None))


def test_a_file_with_a_byte_order_mark_is_read(tmp_path):
    """Windows' Notepad writes a byte order mark."""
    mine = tmp_path / "quick.toml"
    mine.write_bytes(codecs.BOM_UTF8 + QUICK.encode())
    assert config.find("quick", mine).environment == config.parse(QUICK, "quick.toml").environment
    plain = tmp_path / "plain.toml"
    plain.write_text(QUICK)
    assert EnvConfig.load(mine) == EnvConfig.load(plain)


def test_the_systems_are_listed_and_shown_as_they_are_written(tmp_path):
    """The output is a configuration again."""

    def said(*arguments):
        done = CliRunner().invoke(app, ["train", *arguments])
        assert done.exit_code == 0, done.output
        return done.stdout

    listed = json.loads(said("--list", "--json"))
    assert {row["name"] for row in listed} == {*config.systems(), "rax-v3"}
    assert all(row["description"] for row in listed)
    assert "owl-v1" in said("--list")
    shown = said("--show", "owl-v1")
    assert shown == config.systems()["owl-v1"].read_text()
    mine = tmp_path / "mine.toml"
    mine.write_text(shown)
    assert config.find("mine", mine).name == "owl"
    changed = said("--show", "owl", "--ablation", "history-1")
    assert config.parse(changed, "changed").name == "owl-history-1"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [([], "SYSTEM is missing; headway train --list"), (["--show", "rax-v3"], "has no configuration")],
)
def test_a_train_command_without_a_configuration_gives_a_clear_error(arguments, says):
    assert says in str(CliRunner().invoke(app, ["train", *arguments]).exception)


@pytest.mark.parametrize("json_wanted", [True, False])
def test_a_training_that_fails_does_not_end_the_others(tmp_path, monkeypatch, capsys, json_wanted):
    def trained(chosen, where, seed, _):
        if seed == 2:
            raise RunError("the weights are not finite")
        return trained_in(where, chosen.model, seed)

    monkeypatch.setattr(trainings, "train_one", trained)
    planned = [(SimpleNamespace(model="quick"), seed) for seed in (1, 2, 3)]
    says = f"1 of 3 trainings failed: quick, seed 2; the models of the others are in {tmp_path}"
    with pytest.raises(RunError, match=f"^{re.escape(says)}$"):
        cli._train_each(planned, tmp_path, json_wanted)
    out, err = capsys.readouterr()
    scheme = f"learned:model={tmp_path}/quick-seed-1:model={tmp_path}/quick-seed-3"
    assert scheme in out
    assert "headway: quick, seed 2: the weights are not finite\nheadway: quick, seed 3, 3 of 3\n" in err


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (UsageError("a checkpoint of another training"), "a checkpoint of another training"),
        (RuntimeError("[enforce fail]\n  not enough memory"), "RuntimeError: [enforce fail] not enough memory"),
        (OSError(28, "No space left on device"), "[Errno 28] No space left on device"),
    ],
)
def test_no_error_of_one_training_ends_the_others(tmp_path, monkeypatch, capsys, error, says):
    def trained(chosen, where, seed, _):
        if seed == 1:
            raise error
        return trained_in(where, chosen.model, seed)

    monkeypatch.setattr(trainings, "train_one", trained)
    planned = [(SimpleNamespace(model="quick"), seed) for seed in (1, 2)]
    with pytest.raises(RunError, match="1 of 2 trainings failed: quick, seed 1"):
        cli._train_each(planned, tmp_path, json=False)
    assert f"headway: quick, seed 1: {says}\nheadway: quick, seed 2, 2 of 2\n" in capsys.readouterr().err


def test_a_signal_ends_all_trainings(tmp_path, monkeypatch, capsys):
    def trained(*_):
        raise trainings.Stopped("the same command goes on")

    monkeypatch.setattr(trainings, "train_one", trained)
    monkeypatch.setattr(ending, "ignore", lambda: None)
    with pytest.raises(typer.Exit):
        cli._train_each([(SimpleNamespace(model="quick"), seed) for seed in (1, 2)], tmp_path, json=False)
    said = capsys.readouterr().err
    assert said == "headway: quick, seed 1, 1 of 2\nheadway: interrupted; the same command goes on\n"


@pytest.mark.parametrize("fails", [None, "quick", "owl", "both"])
@pytest.mark.parametrize("systems", [["quick"], ["quick", "owl"]])
def test_the_json_of_several_trainings_has_the_same_keys_after_failures(
    tmp_path, monkeypatch, capsys, fails, systems
):
    def trained(chosen, where, seed, _):
        if fails in {chosen.model, "both"}:
            raise RunError("the weights are not finite")
        return trained_in(where, chosen.model, seed)

    monkeypatch.setattr(trainings, "train_one", trained)
    planned = [(SimpleNamespace(model=system), seed) for seed in (1, 2) for system in systems]
    with suppress(RunError):
        cli._train_each(planned, tmp_path, json=True)
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"schemes", "trainings", *(["scheme"] if systems == ["quick"] else [])}
    left = [system for system in systems if fails not in {system, "both"}]
    assert list(found["schemes"]) == left
    if systems == ["quick"]:
        assert found["scheme"] == found["schemes"].get("quick")
