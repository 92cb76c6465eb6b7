"""Model folders: written whole or not at all, shown, and as ONNX; ONNX Runtime is the outside world."""

import codecs
import itertools
import json
import shutil
import tomllib
from hashlib import sha256
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from headway._native import RunError, UsageError, read_parquet
from headway.models import load, write
from headway.models.from_onnx import import_
from headway.models.to_onnx import export
from make_test_model import CARD as TINY_CARD
from make_test_model import FOLDER, TENSORS, outputs

UNITS = 5


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def card_of(net, name="mine"):
    """A card for observations of two or three features and outputs that choose among so many windows."""
    action = {
        "kind": "discrete",
        "choices": [float(n) for n in range(net["layers"][-1])],
        "effect": {"does": "add-cwnd"},
    }
    names = ["pna", "network_known", "pnc_packets"] if "mask" in net else ["rtt_ratio", "loss"]
    features = [{"name": name} for name in names]
    agent = {
        "clock": {"kind": "every-ack"},
        "observation": {"history": net["layers"][0] // len(names), "features": features},
        "action": action,
        "beneath": {"kind": "scheme", "name": "cubic"},
    }
    return {"name": name, "version": 1, "net": net, "agent": agent}


def random_tensors(kind, layers, recurrent, seed=0, masked=0):
    """By PyTorch's names and in its shapes."""
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
    """What of an observation comes through the mask: Owl, section IV-A."""
    for start in range(0, len(x), mask["features"]) if mask else ():
        known = x[start + mask["known"]]
        for j, at in enumerate(mask["masked"]):
            share = sigmoid(tensors["mask.weight"][j] * known + tensors["mask.bias"][j])
            x[start + at] *= share if known > 0 else 0
    return x


def by_hand(net, tensors, observations):
    """The outputs for one flow's observations, in double precision, by the formulas of PyTorch's documentation."""
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
    """A folder of the net of that name; golden outputs are worked out here."""
    net = NETS[name]
    recurrent = 0 if net["kind"] == "mlp" else net.get("recurrent_layers", 1)
    of_mask = len(net.get("mask", {}).get("masked", ()))
    tensors = random_tensors(net["kind"], net["layers"], recurrent, masked=of_mask)
    observations = np.random.default_rng(1).normal(0, 1, (40, net["layers"][0])).astype(np.float32)
    write(folder, card_of(net), tensors, (observations, by_hand(net, tensors, observations)))
    return load(folder)


def run_onnx(content, observations):
    """What ONNX Runtime makes of one flow's observations, one step at a time."""
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
def test_an_exported_graph_does_the_same_in_onnx_runtime_and_comes_back(tmp_path, name):
    model = model_of(name, tmp_path / "mine-v1")
    content, error = export(model)
    assert error < 1e-5
    golden = model.golden()
    assert np.max(np.abs(run_onnx(content, golden["observations"]) - golden["outputs"])) < 1e-5
    (tmp_path / "net.onnx").write_bytes(content)
    card = tmp_path / "mine-v1" / "card.toml"
    assert import_(tmp_path / "net.onnx", card, tmp_path / "back") == model.id
    assert (tmp_path / "back" / "weights.safetensors").read_bytes() == model.files["weights.safetensors"]


def chain(nodes, constants, inputs=4, out="y"):
    """A graph as others write them: `x` [batch, inputs] to `y`."""
    values = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, inputs]),
        helper.make_tensor_value_info(out, TensorProto.FLOAT, None),
    ]
    tensors = [numpy_helper.from_array(np.asarray(v, np.float32), k) for k, v in constants.items()]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


RNG = np.random.default_rng(2)
W, B, V = RNG.normal(0, 1, (4, 6)), RNG.normal(0, 1, 6), RNG.normal(0, 1, (6, 2))


def saved(tmp_path, proto, net=None):
    """The files of an import."""
    (tmp_path / "net.onnx").write_bytes(proto.SerializeToString())
    card = card_of(net or {"layers": [4, 6, 2]})
    del card["net"]
    import tomli_w

    (tmp_path / "card.toml").write_text(tomli_w.dumps(card))
    return tmp_path / "net.onnx", tmp_path / "card.toml", tmp_path / "out"


def test_a_graph_of_matmul_and_add_is_read(tmp_path):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["b", "a"], ["c"]),
        helper.make_node("Tanh", ["c"], ["d"]),
        helper.make_node("Gemm", ["d", "v"], ["y"]),
    ]
    import_(*saved(tmp_path, chain(nodes, {"w": W, "b": B, "v": V})))
    model = load(tmp_path / "out")
    assert model.card["net"] == {"kind": "mlp", "layers": [4, 6, 2], "activations": ["tanh", "identity"]}
    golden = model.golden()
    assert np.allclose(golden["outputs"], np.tanh(golden["observations"] @ W + B) @ V, atol=1e-4)


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ([("Gemm", ["x", "w", "b"], {}), ("Softmax", ["0"], {})], ["Softmax", "a network here is Gemm"]),
        ([("Gemm", ["x", "w", "b"], {"alpha": 2.0})], ["Gemm", "alpha and beta 1"]),
        ([("Gemm", ["x", "w", "b"], {}), ("LeakyRelu", ["0"], {"alpha": 0.2})], ["slope 0.2, must be 0.01"]),
        ([("Tanh", ["x"], {}), ("Gemm", ["0", "w", "b"], {})], ["Tanh", "must follow a dense layer"]),
        ([("Gemm", ["x", "w", "b"], {}), ("Add", ["0", "0"], {})], ["Add", "not a constant"]),
        (
            [("Gemm", ["x", "w", "b"], {}), ("Tanh", ["0"], {}), ("Add", ["1", "0"], {})],
            ["goes to 2 nodes", "one chain of layers"],
        ),
    ],
)
def test_another_graph_is_refused_in_one_line(tmp_path, nodes, says):
    made = [
        helper.make_node(op, inputs, [str(n) if n < len(nodes) - 1 else "y"], **attributes)
        for n, (op, inputs, attributes) in enumerate(nodes)
    ]
    files = saved(tmp_path, chain(made, {"w": W, "b": B}))
    with pytest.raises(UsageError) as error:
        import_(*files)
    assert all(part in str(error.value) for part in ["net.onnx", *says]), error.value
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


def test_a_graph_whose_outputs_are_not_its_layers_is_refused(tmp_path):
    """A Transpose looks like one that changes no number; this one changes their order."""
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["a"]),
        helper.make_node("Reshape", ["a", "s"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=[1, 0]),
        helper.make_node("Reshape", ["t", "f"], ["y"]),
    ]
    proto = chain(nodes, {"w": W, "b": B})
    for name, shape in (("s", [2, 3]), ("f", [1, 6])):
        proto.graph.initializer.append(numpy_helper.from_array(np.array(shape, np.int64), name))
    files = saved(tmp_path, proto, {"layers": [4, 6]})
    with pytest.raises(UsageError, match="no plain chain of layers"):
        import_(*files)


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
        ({}, {"layers.2.bias": np.array([1.0])}, None, '"layers.2.bias" is none of the network'),
        ({"name": "Tiny"}, {}, None, 'name is "Tiny"'),
    ],
)
def test_what_the_loader_refuses_is_not_written(tmp_path, card, tensors, answers, says):
    observations = np.zeros((1, 4), np.float32)
    golden = (observations, outputs(observations) if answers is None else np.array(answers))
    with pytest.raises(UsageError) as error:
        write(tmp_path / "m-v1", {**TINY_CARD, **card}, {**TENSORS, **tensors}, golden)
    assert says in str(error.value)
    assert str(tmp_path / "m-v1") in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_the_fixture_is_what_its_script_writes(tmp_path):
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


def test_the_commands(run, tmp_path):
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
    # With other weights the card tells of another model's training.
    proto = onnx.load(graph)
    for tensor in proto.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(0.5 * numpy_helper.to_array(tensor), tensor.name))
    onnx.save(proto, graph)
    other = tmp_path / "other"
    done = run("models", "import", "--onnx", graph, "--card", FOLDER / "card.toml", "--out", other)
    assert done.returncode == 0, done.stderr
    assert "command" not in tomllib.loads((other / "card.toml").read_text())["training"]


def test_a_network_that_overflows_is_told_of(run, tmp_path):
    agent = {
        "clock": {"kind": "rtt", "n": 0.5, "estimator": "mean"},
        "observation": {"history": 1, "features": [{"name": "rtt_ratio", "clip": [0.0, 10.0]}]},
        "action": {"kind": "continuous", "limit": 4.0, "effect": {"does": "scale-rate", "delta": 0.1}},
        "beneath": {"kind": "rate", "initial_mbps": 2.0, "min_mbps": 0.1, "max_mbps": 100.0},
    }
    net = {"kind": "mlp", "layers": [1, 1, 1], "activations": ["identity", "identity"]}
    weights = {f"layers.{n}.weight": np.full((1, 1), 3e38) for n in (0, 1)}
    biases = {f"layers.{n}.bias": np.zeros(1) for n in (0, 1)}
    card = {"name": "huge", "version": 1, "net": net, "agent": agent}
    # Nothing is finite but the answer to an observation of 0, which no flow ever has.
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
        (("models", "export", FOLDER, "--onnx", "nowhere/x.onnx"), ["nowhere/x.onnx", "folder that is there"]),
        (("models", "import", "--onnx", "x.onnx", "--card", "nowhere.toml", "--out", "o"), ["nowhere.toml"]),
        (("bench", "--schemes", "learned", "--scenario", "pantheon-default"), ["learned:model=..."]),
        (
            ("bench", "--schemes", "learned:model=nowhere", "--scenario", "pantheon-default"),
            ["nowhere: no such folder"],
        ),
    ],
)
def test_bad_input_is_one_line(run, arguments, says):
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert all(part in done.stderr for part in says), done.stderr


def test_weights_beside_a_graph_are_read_and_in_its_hash(run, tmp_path):
    """As PyTorch's exporter writes them."""
    graph = tmp_path / "tiny.onnx"
    assert run("models", "export", FOLDER, "--onnx", graph).returncode == 0
    outside = tmp_path / "outside.onnx"
    onnx.save_model(
        onnx.load(graph), outside, save_as_external_data=True, location="outside.onnx.data", size_threshold=0
    )
    out = tmp_path / "back"
    done = run("models", "import", "--onnx", outside, "--card", FOLDER / "card.toml", "--out", out)
    assert done.returncode == 0, done.stderr
    found = tomllib.loads((out / "card.toml").read_text())["training"]["imported_sha256"]
    data = (tmp_path / "outside.onnx.data").read_bytes()
    assert found == sha256(outside.read_bytes() + data).hexdigest()
    (tmp_path / "outside.onnx.data").unlink()
    done = run("models", "import", "--onnx", outside, "--card", FOLDER / "card.toml", "--out", tmp_path / "no")
    assert done.returncode == 2
    assert "'outside.onnx.data', which is not beside it" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_value_head_is_left_out(run, tmp_path):
    graph = tmp_path / "tiny.onnx"
    assert run("models", "export", FOLDER, "--onnx", graph).returncode == 0
    proto = onnx.load(graph)
    action = proto.graph.output[0].name
    last = next(node for node in proto.graph.node if action in node.output)
    words = ("models", "import", "--onnx", graph, "--card", FOLDER / "card.toml", "--out")

    def with_head(name, *, first):
        """The graph with another head of that name, before the action or after it."""
        both = onnx.ModelProto()
        both.CopyFrom(proto)
        head = onnx.helper.make_node(last.op_type, last.input, [name])
        head.attribute.extend(last.attribute)
        both.graph.node.append(head)
        both.graph.output.append(onnx.helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
        if first:
            ours, theirs = both.graph.output
            both.graph.output.MergeFrom([ours])
            del both.graph.output[0]
            assert both.graph.output[0].name == theirs.name
        onnx.save(both, graph)

    # A head that is called so is no action, wherever it stands.
    for number, (name, first) in enumerate((("value", False), ("value", True), ("critic_out", True))):
        with_head(name, first=first)
        done = run(*words, tmp_path / f"clear-{number}")
        assert (done.returncode, done.stderr) == (0, "")
    with_head("other", first=False)
    done = run(*words, tmp_path / "unclear")
    assert done.returncode == 0
    assert done.stderr == (
        f"headway: warning: {graph}: of its outputs output, other output is taken for the action; "
        "name another with --output\n"
    )
    done = run(*words, tmp_path / "named", "--output", "output")
    assert (done.returncode, done.stderr) == (0, "")
    folders = ("clear-0", "clear-1", "clear-2", "unclear", "named")
    # An id has the graph's own digest in its card, so weights are compared.
    assert len({(tmp_path / folder / "weights.safetensors").read_bytes() for folder in folders}) == 1
    done = run(*words, tmp_path / "no", "--output", "values")
    assert done.returncode == 2
    assert done.stderr == f"headway: --output 'values': no output of {graph}; there are output, other\n"
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("content", [b"", b"not a graph", b"\x08"])
def test_a_file_that_is_no_graph_is_one_line(run, tmp_path, content):
    graph = tmp_path / "empty.onnx"
    graph.write_bytes(content)
    done = run("models", "import", "--onnx", graph, "--card", FOLDER / "card.toml", "--out", tmp_path / "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{graph}: " in done.stderr
    assert "not a whole .onnx file" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


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
def test_a_graph_is_not_written_over_the_model_that_it_is_of(run, tmp_path, name):
    folder = shutil.copytree(FOLDER, tmp_path / "model")
    (folder / "link").symlink_to("card.toml")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    done = run("models", "export", folder, "--onnx", folder / name)
    assert (done.returncode, done.stdout) == (2, "")
    target = folder / name
    assert done.stderr == f"headway: --onnx {target}: is read for it, and would be lost; give another file\n"
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_a_card_with_a_byte_order_mark_is_read(run, tmp_path):
    """Windows' Notepad writes one."""
    folder = shutil.copytree(FOLDER, tmp_path / "model")
    card = folder / "card.toml"
    card.write_bytes(codecs.BOM_UTF8 + card.read_bytes())
    assert run("models", "check", folder).returncode == 0
    graph = tmp_path / "tiny.onnx"
    assert run("models", "export", folder, "--onnx", graph).returncode == 0
    assert import_(graph, card, tmp_path / "back") == load(FOLDER).id == load(folder).id


def steering_card(path, inputs=4, **clock):
    """A card whose action is a number from -5 to 5."""
    card = card_of({"layers": [inputs, 1]})
    del card["net"]
    card["agent"]["action"] = {"kind": "continuous", "limit": 5.0, "effect": {"does": "scale-cwnd", "base": 2.0}}
    if clock:
        card["agent"]["clock"] = clock
    import tomli_w

    path.write_text(tomli_w.dumps(card))
    return path


LAYER = helper.make_node("Gemm", ["x", "w"], ["raw"], transB=1)
BOUNDS = {"w": RNG.normal(0, 3, (1, 4)), "low": -5.0, "high": 5.0, "seven": 7.0, "pair": [5.0, 5.0]}


def limited(*nodes, out="y"):
    """A graph of one layer and what comes behind it."""
    return chain([LAYER, *nodes], BOUNDS, out=out)


@pytest.mark.parametrize(
    "nodes",
    [
        [("Clip", ["raw", "low", "high"], "y")],
        [("Clip", ["raw", "", "high"], "y")],
        [("Min", ["raw", "high"], "a"), ("Max", ["low", "a"], "y")],
        [("Clip", ["raw", "low", "high"], "a"), ("Identity", ["a"], "y")],
        [("Identity", ["raw"], "a"), ("Clip", ["a", "low", "high"], "y")],
    ],
)
def test_a_limit_at_the_end_that_is_the_actions_is_left_out(tmp_path, nodes):
    made = [helper.make_node(operator, inputs, [output]) for operator, inputs, output in nodes]
    (tmp_path / "net.onnx").write_bytes(limited(*made).SerializeToString())
    import_(tmp_path / "net.onnx", steering_card(tmp_path / "card.toml"), tmp_path / "out")
    golden = load(tmp_path / "out").golden()
    assert np.allclose(golden["outputs"], golden["observations"] @ BOUNDS["w"].T, atol=1e-4)
    assert np.abs(golden["outputs"]).max() > 5, "the limit has met something"


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        (
            [("Clip", ["raw", "low", "seven"], "y")],
            "(Clip): limits the action to -5.0 and 7.0, but the limit of the",
        ),
        ([("Clip", ["raw", "high", "low"], "y")], "limits the action to 5.0 and -5.0"),
        ([("Clip", ["raw", "low", "raw"], "y")], "limits the action to -5.0 and no constant"),
        ([("Min", ["raw", "low"], "y")], "(Min): limits the action to -5.0"),
        ([("Clip", ["raw", "low", "pair"], "y")], "[agent.action] is 5; make them equal"),
        ([("Clip", ["raw"], "y")], "limits the action to nothing"),
        ([("Clip", ["raw", "low", "high"], "a"), ("Tanh", ["a"], "y")], "(Clip): must be the last"),
    ],
)
def test_another_limit_is_refused_by_the_nodes_name_and_both_limits(tmp_path, nodes, says):
    made = [helper.make_node(operator, inputs, [output]) for operator, inputs, output in nodes]
    (tmp_path / "net.onnx").write_bytes(limited(*made).SerializeToString())
    with pytest.raises(UsageError) as error:
        import_(tmp_path / "net.onnx", steering_card(tmp_path / "card.toml"), tmp_path / "out")
    assert says in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


def test_a_clip_is_refused_where_an_action_is_a_choice(tmp_path):
    nodes = [LAYER, helper.make_node("Clip", ["raw", "low", "high"], ["y"])]
    wide = {**BOUNDS, "w": RNG.normal(0, 3, (2, 4))}
    files = saved(tmp_path, chain(nodes, wide), {"layers": [4, 2]})
    with pytest.raises(UsageError, match=r"the limit of the card's \[agent.action\] is none"):
        import_(*files)


def test_a_limit_given_by_attributes_and_one_for_each_number_of_an_action(tmp_path):
    old = helper.make_node("Clip", ["raw"], ["y"], min=-5.0, max=5.0)
    proto = limited(old)
    proto.opset_import[0].version = 9
    (tmp_path / "net.onnx").write_bytes(proto.SerializeToString())
    import_(tmp_path / "net.onnx", steering_card(tmp_path / "card.toml"), tmp_path / "old")
    constants = {"w": RNG.normal(0, 3, (2, 4)), "low": [-5.0, -1.0], "high": [5.0, 1.0]}
    nodes = [LAYER, helper.make_node("Min", ["raw", "high"], ["a"]), helper.make_node("Max", ["a", "low"], ["y"])]
    (tmp_path / "net.onnx").write_bytes(chain(nodes, constants).SerializeToString())
    card = steering_card(tmp_path / "card.toml", kind="chosen", estimator="latest", least=0.5, most=4.0)
    import_(tmp_path / "net.onnx", card, tmp_path / "two")
    assert np.abs(load(tmp_path / "two").golden()["outputs"]).max() > 5


def test_of_several_outputs_the_action_is_taken_and_a_value_is_none(tmp_path, capsys):
    value = helper.make_node("Gemm", ["x", "v"], ["value"], transB=1)
    constants = {"w": BOUNDS["w"], "v": RNG.normal(0, 1, (1, 4))}
    card = steering_card(tmp_path / "card.toml")
    for name in ("actions", "y"):
        layer = helper.make_node("Gemm", ["x", "w"], [name], transB=1)
        proto = chain([value, layer], constants, out="value")
        proto.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
        (tmp_path / f"{name}.onnx").write_bytes(proto.SerializeToString())
        import_(tmp_path / f"{name}.onnx", card, tmp_path / name)
        assert capsys.readouterr().err == ""
        golden = load(tmp_path / name).golden()
        assert np.allclose(golden["outputs"], golden["observations"] @ constants["w"].T, atol=1e-4)
