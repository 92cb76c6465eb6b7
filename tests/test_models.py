"""Model folders are written completely or not at all, shown, and exported to ONNX.

The reference is ONNX Runtime.
"""

import itertools
import json
import shutil
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from headway._native import RunError, UsageError, read_parquet
from headway.models import load, write
from headway.models.dense import ACTIVATIONS
from headway.models.from_onnx import import_
from headway.models.sb3 import _folded
from headway.models.to_onnx import export
from make_test_model import CARD as TINY_CARD
from make_test_model import FOLDER, TENSORS, outputs
from onnx_graphs import card_of

UNITS = 5


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def random_tensors(kind, layers, recurrent, seed=0, masked=0):
    """Tensors with PyTorch's names and shapes."""
    rng, tensors = np.random.default_rng(seed), {}
    if masked:
        tensors |= {f"mask.{part}": rng.normal(0, 1, masked) for part in ("weight", "bias")}
    gates = {"gru": 3, "lstm": 4}.get(kind, 0)
    for n, (inputs, units) in enumerate(itertools.pairwise(layers)):
        if n < recurrent:
            shapes = {"weight_ih": (gates * units, inputs), "weight_hh": (gates * units, units)}
            shapes |= {"bias_ih": (gates * units,), "bias_hh": (gates * units,)}
            tensors |= {f"{kind}.{name}_l{n}": rng.normal(0, 0.5, shape) for name, shape in shapes.items()}
        else:
            tensors[f"layers.{n - recurrent}.weight"] = rng.normal(0, 0.5, (units, inputs))
            tensors[f"layers.{n - recurrent}.bias"] = rng.normal(0, 0.5, units)
    return {name: tensor.astype(np.float32) for name, tensor in tensors.items()}


def masked(mask, tensors, x):
    """The observation after the mask: Owl, section IV-A."""
    for start in range(0, len(x), mask["features"]) if mask else ():
        known = x[start + mask["known"]]
        for j, at in enumerate(mask["masked"]):
            share = sigmoid(tensors["mask.weight"][j] * known + tensors["mask.bias"][j])
            x[start + at] *= share if known > 0 else 0
    return x


def by_hand(net, tensors, observations):
    """The outputs for one flow's observations, in double precision.

    They use the formulas of PyTorch's documentation.
    """
    t = {name: tensor.astype(float) for name, tensor in tensors.items()}
    kind, recurrent = net["kind"], 0 if net["kind"] == "mlp" else net.get("recurrent_layers", 1)
    hidden = [np.zeros(units) for units in net["layers"][1 : 1 + recurrent]]
    cell = [np.zeros_like(h) for h in hidden]
    found = []
    for row in observations:
        x = masked(net.get("mask"), t, row.astype(float))
        for n in range(recurrent):
            a = t[f"{kind}.weight_ih_l{n}"] @ x + t[f"{kind}.bias_ih_l{n}"]
            b = t[f"{kind}.weight_hh_l{n}"] @ hidden[n] + t[f"{kind}.bias_hh_l{n}"]
            if kind == "gru":
                (ar, az, an), (br, bz, bn) = np.split(a, 3), np.split(b, 3)
                z = sigmoid(az + bz)
                hidden[n] = (1 - z) * np.tanh(an + sigmoid(ar + br) * bn) + z * hidden[n]
            else:
                i, f, g, o = np.split(a + b, 4)
                cell[n] = sigmoid(f) * cell[n] + sigmoid(i) * np.tanh(g)
                hidden[n] = sigmoid(o) * np.tanh(cell[n])
            x = hidden[n]
        for n, activation in enumerate(net["activations"]):
            x = t[f"layers.{n}.weight"] @ x + t[f"layers.{n}.bias"]
            x = {
                "tanh": np.tanh,
                "relu": lambda v: np.maximum(v, 0),
                "leaky-relu": lambda v: np.where(v < 0, 0.01 * v, v),
                "sigmoid": sigmoid,
                "identity": lambda v: v,
            }[activation](x)
        found.append(x)
    return np.array(found)


NETS = {
    "mlp": {
        "kind": "mlp",
        "layers": [4, 8, 7, 6, 5, 3],
        "activations": ["tanh", "relu", "leaky-relu", "sigmoid", "identity"],
    },
    "gru": {"kind": "gru", "layers": [4, UNITS, 3], "activations": ["identity"]},
    "lstm": {"kind": "lstm", "layers": [4, UNITS, 6, 3], "activations": ["relu", "identity"]},
    "two-lstm": {
        "kind": "lstm",
        "layers": [4, UNITS, UNITS, 3],
        "activations": ["identity"],
        "recurrent_layers": 2,
    },
    "masked": {
        "kind": "mlp",
        "layers": [12, 7, 3],
        "activations": ["relu", "identity"],
        "mask": {"features": 3, "known": 1, "masked": [2, 0]},
    },
    "masked-gru": {
        "kind": "gru",
        "layers": [6, UNITS, 3],
        "activations": ["identity"],
        "mask": {"features": 3, "known": 1, "masked": [0]},
    },
}


def model_of(name, folder):
    """A folder of the net of that name. Its golden outputs are computed here."""
    net = NETS[name]
    recurrent = 0 if net["kind"] == "mlp" else net.get("recurrent_layers", 1)
    of_mask = len(net.get("mask", {}).get("masked", ()))
    tensors = random_tensors(net["kind"], net["layers"], recurrent, masked=of_mask)
    observations = np.random.default_rng(1).normal(0, 1, (40, net["layers"][0])).astype(np.float32)
    write(folder, card_of(net), tensors, (observations, by_hand(net, tensors, observations)))
    return load(folder)


def run_onnx(content, observations):
    """The outputs of ONNX Runtime for one flow's observations, one step at a time."""
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    first, *states = session.get_inputs()
    memory = [np.zeros([1, 1, UNITS], np.float32) for _ in states]
    found = []
    for row in observations:
        feeds = {first.name: row.reshape([1] * (len(first.shape) - 1) + [-1])}
        feeds |= {s.name: m for s, m in zip(states, memory, strict=True)}
        output, *memory = session.run(None, feeds)
        found.append(output.reshape(-1))
    return np.array(found)


@pytest.mark.parametrize("name", NETS)
def test_an_exported_graph_gives_the_same_outputs_in_onnx_runtime_and_after_import(tmp_path, name):
    model = model_of(name, tmp_path / "mine-v1")
    content, error = export(model)
    assert error < 1e-5
    golden = model.golden()
    assert np.max(np.abs(run_onnx(content, golden["observations"]) - golden["outputs"])) < 1e-5
    (tmp_path / "net.onnx").write_bytes(content)
    card = tmp_path / "mine-v1" / "card.toml"
    assert import_(tmp_path / "net.onnx", card, tmp_path / "back") == model.id
    assert (tmp_path / "back" / "weights.safetensors").read_bytes() == model.files["weights.safetensors"]


def test_a_folder_is_written_once_and_the_same_each_time(tmp_path):
    observations = np.zeros((3, 4), np.float32)
    golden = (observations, outputs(observations))
    assert write(tmp_path / "a", TINY_CARD, TENSORS, golden) == write(tmp_path / "b", TINY_CARD, TENSORS, golden)
    for name in ("card.toml", "weights.safetensors", "golden.npz"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    with pytest.raises(UsageError, match="never changed"):
        write(tmp_path / "a", TINY_CARD, TENSORS, golden)


@pytest.mark.parametrize(
    ("card", "tensors", "answers", "says"),
    [
        ({}, {}, [[0.7]], "golden.npz: row 0: outputs 0.7 in the file"),
        ({}, {"layers.1.bias": np.array([np.nan])}, None, "layers.1.bias: number 0 is NaN"),
        ({}, {"layers.2.bias": np.array([1.0])}, None, '"layers.2.bias" is not in the network'),
        ({"name": "Tiny"}, {}, None, 'name is "Tiny"'),
    ],
)
def test_a_folder_that_the_loader_would_refuse_is_not_written(tmp_path, card, tensors, answers, says):
    observations = np.zeros((1, 4), np.float32)
    golden = (observations, outputs(observations) if answers is None else np.array(answers))
    with pytest.raises(UsageError) as error:
        write(tmp_path / "m-v1", {**TINY_CARD, **card}, {**TENSORS, **tensors}, golden)
    assert says in str(error.value)
    assert str(tmp_path / "m-v1") in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_the_fixture_equals_the_output_of_its_script(tmp_path):
    observations = load(FOLDER).golden()["observations"]
    write(tmp_path / "tiny-v1", TINY_CARD, TENSORS, (observations, outputs(observations)))
    for path in FOLDER.iterdir():
        assert (tmp_path / "tiny-v1" / path.name).read_bytes() == path.read_bytes(), path.name


def test_a_graph_that_differs_from_the_golden_outputs_is_not_exported(monkeypatch):
    model = load(FOLDER)
    golden = model.golden()
    monkeypatch.setattr(type(model), "golden", lambda _: golden | {"outputs": golden["outputs"] + 1e-3})
    with pytest.raises(RunError, match="differ from the golden ones"):
        export(model)


def test_the_terminal_shows_the_configuration_line_by_line(run):
    """The file has one long line. The output is TOML with the same content."""
    shown = run("models", "show", "owl-v1").stdout
    card = Path("models/owl-v1/card.toml").read_text()
    assert tomllib.loads(shown[shown.index("format = ") :]) == tomllib.loads(card)
    assert "\nscenarios = [\n" not in card
    assert "\nscenarios = [\n" in shown


def test_the_model_commands_list_show_and_check(run, tmp_path):
    names = [m["name"] for m in json.loads(run("models", "--json").stdout)]
    assert all((Path("models") / name / "card.toml").is_file() for name in names)
    shown = json.loads(run("models", "show", FOLDER, "--json").stdout)
    assert shown["id"].startswith("tiny-v1@")
    assert shown["net"]["layers"] == [4, 3, 1]
    assert "layers" in run("models", "show", FOLDER).stdout
    checked = json.loads(run("models", "check", FOLDER, "--json").stdout)
    assert checked["golden_rows"] == 32
    assert run("models", "check", FOLDER).stdout.startswith(f"{shown['id']}: sound; 32 golden outputs")
    graph = tmp_path / "tiny.onnx"
    exported = json.loads(run("models", "export", FOLDER, "--onnx", graph, "--json").stdout)
    assert exported["golden_error"] < 1e-5
    onnx.checker.check_model(onnx.load(graph), full_check=True)
    back = tmp_path / "back"
    done = run("models", "import", "--onnx", graph, "--card", FOLDER / "card.toml", "--out", back, "--json")
    assert json.loads(done.stdout) == {"folder": str(back), "id": shown["id"]}
    again = tomllib.loads((back / "card.toml").read_text())
    assert again["training"]["imported_from"] == "tiny.onnx"
    assert again["training"]["command"]
    # With other weights the card describes another model's training.
    proto = onnx.load(graph)
    for tensor in proto.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(0.5 * numpy_helper.to_array(tensor), tensor.name))
    onnx.save(proto, graph)
    other = tmp_path / "other"
    done = run("models", "import", "--onnx", graph, "--card", FOLDER / "card.toml", "--out", other)
    assert done.returncode == 0, done.stderr
    assert "command" not in tomllib.loads((other / "card.toml").read_text())["training"]


def test_a_network_that_overflows_gives_a_warning(run, tmp_path):
    agent = {
        "clock": {"kind": "rtt", "n": 0.5, "estimator": "mean"},
        "observation": {"history": 1, "features": [{"name": "rtt_ratio", "clip": [0.0, 10.0]}]},
        "action": {"kind": "continuous", "limit": 4.0, "effect": {"does": "scale-rate", "delta": 0.1}},
        "base": {"kind": "rate", "initial_mbps": 2.0, "min_mbps": 0.1, "max_mbps": 100.0},
    }
    net = {"kind": "mlp", "layers": [1, 1, 1], "activations": ["identity", "identity"]}
    weights = {f"layers.{n}.weight": np.full((1, 1), 3e38) for n in (0, 1)}
    biases = {f"layers.{n}.bias": np.zeros(1) for n in (0, 1)}
    card = {"name": "huge", "version": 1, "net": net, "agent": agent}
    # Only the answer to an observation of 0 is finite, and no flow ever has that.
    write(tmp_path / "huge-v1", card, weights | biases, (np.zeros((1, 1)), np.zeros((1, 1))))
    scheme = f"learned:model={tmp_path / 'huge-v1'}"
    done = run(
        *("bench", "--schemes", f"{scheme},newreno", "--scenario", "pantheon-default", "--runs", "2"),
        *("--seconds", "2", "--out", tmp_path / "out"),
    )
    assert done.returncode == 0
    warned = [line for line in done.stderr.splitlines() if "decisions of 2 runs did nothing" in line]
    assert len(warned) == 1
    assert scheme in warned[0]
    _, rows = read_parquet(str(tmp_path / "out" / "results.parquet"))
    refused = dict(zip(rows["scheme"], rows["refused_decisions"], strict=True))
    assert refused["newreno"] == 0
    assert refused[scheme] > 20


def test_results_name_the_model_that_decided(run, tmp_path):
    scheme = f"learned:model={FOLDER}"
    done = run(
        *("bench", "--schemes", f"{scheme},cubic", "--scenario", "pantheon-default", "--runs", "1"),
        *("--seconds", "2", "--json", "--out", tmp_path),
    )
    rows = json.loads(done.stdout)
    assert [row["model"] for row in rows] == [load(FOLDER).id, None]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("models", "show", "auroar-v1"), ["auroar-v1", "no such model"]),
        (("models", "check", "nowhere"), ["nowhere", "no such model, nor folder"]),
        (("models", "export", FOLDER, "--onnx", "nowhere/x.onnx"), ["nowhere/x.onnx", "existing folder"]),
        (("models", "import", "--onnx", "x.onnx", "--card", "nowhere.toml", "--out", "o"), ["nowhere.toml"]),
        (("bench", "--schemes", "learned", "--scenario", "pantheon-default"), ["learned:model=..."]),
        (
            ("bench", "--schemes", "learned:model=nowhere", "--scenario", "pantheon-default"),
            ["nowhere: no such folder"],
        ),
    ],
)
def test_bad_input_gives_a_one_line_error(run, arguments, says):
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert all(part in done.stderr for part in says), done.stderr


def test_a_graph_with_states_has_its_action_first(tmp_path):
    model = model_of("gru", tmp_path / "gru")
    graph, card = tmp_path / "gru.onnx", tmp_path / "gru" / "card.toml"
    graph.write_bytes(export(model)[0])
    with pytest.raises(UsageError, match=r"has states, and its action comes first: outputs, next_hidden_0"):
        import_(graph, card, tmp_path / "out", "next_hidden_0")
    assert import_(graph, card, tmp_path / "out", "outputs") == model.id
    proto = onnx.load(graph)
    proto.graph.output.append(helper.make_tensor_value_info("squeeze_1", TensorProto.FLOAT, None))
    onnx.save(proto, graph)
    with pytest.raises(UsageError, match=r"1 inputs of state, but 2 outputs of it; must be as many"):
        import_(graph, card, tmp_path / "more")


@pytest.mark.parametrize("name", ["card.toml", "weights.safetensors", "golden.npz", "link"])
def test_an_exported_graph_does_not_overwrite_its_model(run, tmp_path, name):
    folder = shutil.copytree(FOLDER, tmp_path / "model")
    (folder / "link").symlink_to("card.toml")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    done = run("models", "export", folder, "--onnx", folder / name)
    assert (done.returncode, done.stdout) == (2, "")
    target = folder / name
    assert done.stderr == f"headway: --onnx {target}: is an input too, and would be lost; give another file\n"
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


@pytest.mark.parametrize(("limit", "layers"), [(1e9, 2), (0.7, 3)])
def test_observations_are_normalised_within_the_network_as_vec_normalize_does(limit, layers):
    """Stable-Baselines3's formula: (x - mean) / sqrt(var + epsilon), clipped.

    The last input never varied.
    """
    rng = np.random.default_rng(1)
    mean, var = np.array([3.0, -2.0, 0.5, 7.0]), np.array([4.0, 0.25, 1e-3, 0.0])
    statistics = SimpleNamespace(mean=mean, var=var, count=1e6)
    normaliser = SimpleNamespace(obs_rms=statistics, epsilon=1e-8, clip_obs=limit)
    net = [
        (rng.normal(size=(5, 4)), rng.normal(size=5), "tanh"),
        (rng.normal(size=(2, 5)), rng.normal(size=2), "relu"),
    ]
    seen = mean + np.sqrt(var) * rng.normal(size=(50, 4))
    low, high = np.full(4, -100.0), np.full(4, 100.0)
    folded = _folded(net, normaliser, low, high)
    assert len(folded) == layers

    def through(layers, x):
        for weight, bias, activation in layers:
            x = ACTIVATIONS[activation](x @ weight.T + bias)
        return x

    shown = np.clip((seen - mean) / np.sqrt(var + 1e-8), -limit, limit)
    assert np.allclose(through(folded, seen), through(net, shown), atol=1e-9)
