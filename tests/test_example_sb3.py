"""`examples/train_sb3.py` and its page, as far as possible without PyTorch.

tests/train runs the rest.
"""

import ast
import importlib.util
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from headway.envs import EnvConfig, Measurements, make, make_vec

ROOT = Path(__file__).parent.parent
FILE = ROOT / "examples" / "train_sb3.py"
PAGE = ROOT / "docs" / "stable-baselines3.md"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("train_sb3", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def blocks():
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def reward_of(text):
    """The statements of the function `reward`, without its docstring."""
    found = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == "reward"]
    return [ast.dump(node) for node in found[0].body if not isinstance(node, ast.Expr)]


def test_the_examples_reward_is_that_of_the_page(blocks):
    assert reward_of(FILE.read_text()) == reward_of(blocks[0])


def test_the_examples_reward_is_the_share_less_queueing_less_loss(example):
    m = Measurements.of(
        throughput_mbps=[6.0, 12.0, 3.0],
        path_mbps=[12.0, 12.0, 12.0],
        rtt_ms=[30.0, 60.0, 900.0],
        base_rtt_ms=[30.0, 30.0, 30.0],
        loss=[0.0, 0.05, 0.5],
    )
    assert example.reward(m) == pytest.approx([0.5, 1.0 - 0.5 - 0.1, 0.25 - 2.0 - 1.0])


def test_the_environments_accept_the_examples_reward(example):
    env = make_vec("headway/AuroraWide-v0", 4, reward=example.reward)
    env.reset(seed=2)
    for _ in range(30):
        _, rewards, _, _, info = env.step(np.ones((4, 1), dtype=np.float32))
        assert rewards == pytest.approx(example.reward({name: np.asarray(info[name]) for name in info}))
    assert rewards.std() > 0


def test_an_existing_folder_is_refused_before_the_training(example, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["train_sb3.py", "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="2"):
        example.main()
    assert f"{tmp_path} is there already; give the next version" in capsys.readouterr().err


def test_after_its_training_the_example_compares_the_model_with_cubic(example, tmp_path, monkeypatch, capsys):
    """A shipped model's folder stands for what the training makes."""
    asked = []

    def train(steps, seed, out):
        asked.append((steps, seed, out))
        shutil.copytree(ROOT / "models" / "aurora-v2", out)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(example, "train", train)
    options = "--out mine-v1 --steps 64 --seed 3 --runs 2 --seconds 3"
    monkeypatch.setattr("sys.argv", ["train_sb3.py", *options.split()])
    example.main()
    assert asked == [(64, 3, "mine-v1")]
    printed = capsys.readouterr().out
    verdicts = r"^learned:model=mine-v1 +(\S+) +2 +(throughput|p95 delay|loss) .* (?:better|worse|equal|unclear)$"
    found = set(re.findall(verdicts, printed, re.MULTILINE))
    metrics = ("throughput", "p95 delay", "loss")
    assert found == {(scenario, metric) for scenario in ("pantheon-default", "low-bdp") for metric in metrics}
    assert printed.endswith(
        "headway bench --schemes learned:model=mine-v1,cubic --scenario pantheon-default,low-bdp --against cubic\n"
    )


def test_the_first_two_programs_of_the_page_show_a_reward(blocks, capsys):
    exec(blocks[0] + blocks[1], {})
    values = [float(word) for word in capsys.readouterr().out.split()]
    assert len(values) == 5
    assert min(values[1:]) > 0


def test_the_changes_that_the_page_suggests_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "scenarios" / "low-bdp.toml").read_text()
    Path("mine.toml").write_text(text.replace('name = "low-bdp"', 'name = "mine"'))
    config = re.search(r"`make_vec\((EnvConfig\.of\(.*\))\)`", PAGE.read_text())[1]
    taken = eval(config, {"EnvConfig": EnvConfig})
    assert [name for name, _ in taken.scenarios] == ["low-bdp", "mine.toml"]
    make(taken).reset(seed=1)


def test_the_page_gives_the_range_of_the_environment_that_it_trains_on():
    from headway.trained_range import trained_range

    names = [name for name, _ in EnvConfig.named("aurora-wide").scenarios]
    assert names == ["aurora-training-wide"]
    bounds = trained_range(names)["range"]
    assert bounds["rate_mbps"] == pytest.approx([0.5, 200], rel=0.01)
    assert bounds["rtt_ms"] == pytest.approx([5, 400], rel=0.03)
    assert bounds["loss"] == pytest.approx([0, 0.02], abs=1e-3)
    assert "0.5 to\n  200 Mbit/s, RTTs of 5 to 400 ms and up to 2% of random loss" in PAGE.read_text()
