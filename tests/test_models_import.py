"""Model folders of ONNX graphs from PyTorch's exporter and others, and the refused ones."""

import codecs
import re
import shutil
import subprocess
import sys
import tomllib
from hashlib import sha256

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from headway._native import UsageError
from headway.models import load
from headway.models.from_onnx import import_
from headway.models.run_onnx import rollout
from make_test_model import FOLDER
from onnx_graphs import BOUNDS, RNG, B, V, W, chain, saved, steering_card


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
    """A Transpose looks like a node that changes no number. This one changes their order."""
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


def test_external_weights_of_a_graph_are_read_and_included_in_its_hash(run, tmp_path):
    """The files are as PyTorch's exporter writes them."""
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
    assert "'outside.onnx.data', which is not next to it" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_value_head_is_left_out(run, tmp_path):
    graph = tmp_path / "tiny.onnx"
    assert run("models", "export", FOLDER, "--onnx", graph).returncode == 0
    proto = onnx.load(graph)
    action = proto.graph.output[0].name
    last = next(node for node in proto.graph.node if action in node.output)
    words = ("models", "import", "--onnx", graph, "--card", FOLDER / "card.toml", "--out")

    def with_head(name, *, first):
        """The graph with another head of that name, before or after the action."""
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

    # A head with such a name is not an action, at any position.
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
    # The card contains the graph's own digest, so weights are compared and not ids.
    assert len({(tmp_path / folder / "weights.safetensors").read_bytes() for folder in folders}) == 1
    done = run(*words, tmp_path / "no", "--output", "values")
    assert done.returncode == 2
    assert done.stderr == f"headway: --output 'values': no output of {graph}; there are output, other\n"
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("content", [b"", b"not a graph", b"\x08"])
def test_a_file_without_a_graph_gives_a_one_line_error(run, tmp_path, content):
    graph = tmp_path / "empty.onnx"
    graph.write_bytes(content)
    done = run("models", "import", "--onnx", graph, "--card", FOLDER / "card.toml", "--out", tmp_path / "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{graph}: " in done.stderr
    assert "not a whole .onnx file" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_card_with_a_byte_order_mark_is_read(run, tmp_path):
    """Windows' Notepad writes a byte order mark."""
    folder = shutil.copytree(FOLDER, tmp_path / "model")
    card = folder / "card.toml"
    card.write_bytes(codecs.BOM_UTF8 + card.read_bytes())
    assert run("models", "check", folder).returncode == 0
    graph = tmp_path / "tiny.onnx"
    assert run("models", "export", folder, "--onnx", graph).returncode == 0
    assert import_(graph, card, tmp_path / "back") == load(FOLDER).id == load(folder).id


def test_the_action_is_taken_from_several_outputs_and_never_a_value(tmp_path, capsys):
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


def node(operator, inputs, output, domain="", **attributes):
    return helper.make_node(operator, inputs.split(), [output], name=f"/{output}", domain=domain, **attributes)


def constant(output, value, dtype=np.float32):
    return helper.make_node(
        "Constant", [], [output], value=numpy_helper.from_array(np.asarray(value, dtype), output)
    )


FIRST, TANH, LAST = node("MatMul", "x w", "a"), node("Tanh", "c", "d"), node("MatMul", "d v", "y")
FORMS = {
    "a bias before its multiplication": [FIRST, node("Add", "b a", "c"), TANH, LAST],
    "weights that a Transpose turns": [
        *(node("Transpose", "w", "t", perm=[1, 0]), node("Transpose", "t", "w2", perm=[1, 0])),
        *(node("MatMul", "x w2", "a"), node("Add", "a b", "c"), TANH, LAST),
    ],
    "a Gemm of turned weights": [node("Transpose", "w", "t"), node("Gemm", "x t b", "c", transB=1), TANH, LAST],
    "weights that are shared": [
        *(node("Identity", "b", "b2"), node("Identity", "w", "w2"), node("Gemm", "x w2 b2", "c"), TANH, LAST)
    ],
    "weights in nodes": [constant("w2", W), constant("b2", B), node("Gemm", "x w2 b2", "c"), TANH, LAST],
    "a bias of two": [constant("zero", 0.0), node("Gemm", "x w b", "a"), node("Add", "a zero", "c"), TANH, LAST],
    "double precision": [
        *(node("Cast", "x", "x2", to=TensorProto.DOUBLE), node("Cast", "w", "w2", to=TensorProto.DOUBLE)),
        *(node("Cast", "b", "b2", to=TensorProto.DOUBLE), node("Gemm", "x2 w2 b2", "a")),
        *(node("Cast", "a", "c", to=TensorProto.FLOAT), TANH, LAST),
    ],
    "a Dropout that drops nothing": [
        *(constant("half", 0.5), constant("no", False, bool), node("Gemm", "x w b", "a")),
        *(node("Dropout", "a half no", "c"), TANH, LAST),
    ],
    "axes that come and go": [
        *(constant("axis", [0], np.int64), node("Unsqueeze", "x axis", "x2"), node("MatMul", "x2 w", "a")),
        *(node("Add", "b a", "b2"), node("Squeeze", "b2 axis", "c"), TANH, LAST),
    ],
    "a shape that is put together": [
        *(constant("n", [-1], np.int64), constant("m", [4], np.int64), node("Concat", "n m", "shape", axis=0)),
        *(node("Reshape", "x shape", "x2"), node("Gemm", "x2 w b", "c"), TANH, LAST),
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_the_forms_of_exporters_are_one_network(tmp_path, form):
    """The forms are those of PyTorch's exporter, with do_constant_folding=False and without."""
    import_(*saved(tmp_path, chain(FORMS[form], {"w": W, "b": B, "v": V})))
    model = load(tmp_path / "out")
    assert model.card["net"] == {"kind": "mlp", "layers": [4, 6, 2], "activations": ["tanh", "identity"]}
    golden = model.golden()
    assert np.allclose(golden["outputs"], np.tanh(golden["observations"] @ W + B) @ V, atol=1e-4)


def test_steps_of_an_observation_with_an_axis_of_their_own(tmp_path):
    proto = chain([node("Flatten", "x", "x2"), node("Gemm", "x2 w b", "c"), TANH, LAST], {"w": W, "b": B, "v": V})
    proto.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 2, 2]))
    import_(*saved(tmp_path, proto))
    assert load(tmp_path / "out").card["net"]["layers"] == [4, 6, 2]


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        (
            [constant("half", 0.5), constant("yes", True, bool), FIRST, node("Dropout", "a half yes", "y")],
            "node '/y' (Dropout): drops numbers, as in training; export the network after its eval()",
        ),
        (
            [FIRST, node("Cast", "a", "y", to=TensorProto.FLOAT16)],
            "node '/y' (Cast): casts to FLOAT16, must cast to FLOAT or DOUBLE",
        ),
        ([node("Gemm", "x w b", "y", domain="com.mine")], "node '/y' (Gemm): is of the domain com.mine"),
        ([FIRST, node("MatMul", "a w", "y")], "node '/y' (MatMul): its weights take 4 numbers, but it is given 6"),
        ([node("MatMul", "x b", "y")], "node '/y' (MatMul): its weights have 1 dimensions, must have 2"),
        ([FIRST, node("Add", "a w", "y")], "node '/y' (Add): its bias has 24 numbers, its layer 6 outputs"),
        ([node("Reshape", "w v", "w2"), node("MatMul", "x w2", "y")], "node '/w2' (Reshape): cannot be worked out"),
        (
            [node("RandomNormalLike", "w", "w2"), node("MatMul", "x w2", "y")],
            "node '/y' (MatMul): its input 'w2' is not a constant",
        ),
        (
            [FIRST, node("Tanh", "a", "c"), node("Relu", "a", "d"), node("Add", "c d", "y")],
            "'a' goes to 2 nodes: node '/c' (Tanh), node '/d' (Relu); a network here is one chain",
        ),
    ],
)
def test_a_refused_node_is_named(tmp_path, nodes, says):
    with pytest.raises(UsageError) as error:
        import_(*saved(tmp_path, chain(nodes, {"w": W, "b": B, "v": V})))
    assert f"{tmp_path / 'net.onnx'}: {says}" in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


MALFORMED = {
    "/h (GRU)": [node("GRU", "x w b", "h", hidden_size=5, linear_before_reset=1), node("MatMul", "h v", "y")],
    "/a (GRU)": [node("GRU", "x gw gr", "a", hidden_size=4, linear_before_reset=1), node("MatMul", "a v", "y")],
    "/m (MatMul)": [node("MatMul", "x", "m"), node("MatMul", "m v", "y")],
    "/c (Gemm)": [node("Gemm", "x", "c"), node("MatMul", "c v", "y")],
    "/d (Cast)": [FIRST, node("Cast", "a", "d"), node("MatMul", "d v", "y")],
    "/e (Add)": [FIRST, node("Add", "a", "e"), node("MatMul", "e v", "y")],
}


@pytest.mark.parametrize("where", MALFORMED)
def test_a_malformed_node_is_named(tmp_path, where):
    # These are weights of a GRU of four units, and of one with ten rows instead of twelve.
    gates = {"gw": np.zeros((1, 10, 4)), "gr": np.zeros((1, 10, 4))}
    files = saved(tmp_path, chain(MALFORMED[where], {"w": W, "b": B, "v": V, **gates}))
    name, _, operator = where.partition(" ")
    with pytest.raises(UsageError, match=rf"net.onnx: node '{name}' {re.escape(operator)}: its inputs and weights"):
        import_(*files)


def test_a_malformed_tensor_gives_a_one_line_error(tmp_path):
    proto = chain([FIRST, node("MatMul", "a v", "y")], {"w": W, "v": V})
    proto.graph.initializer[0].dims[0] = 5
    with pytest.raises(UsageError, match=r"net\.onnx: not as ONNX has it: ValueError: ") as error:
        import_(*saved(tmp_path, proto))
    assert "\n" not in str(error.value)


def test_a_card_with_a_date_gives_a_one_line_error(tmp_path):
    graph, card, out = saved(tmp_path, chain([node("Gemm", "x w b", "y")], {"w": W, "b": B}))
    card.write_text(card.read_text() + "\n[agent.made]\non = 2026-11-26\n")
    with pytest.raises(UsageError, match=r"card\.toml: \[agent\] has a date or a time; write numbers and texts"):
        import_(graph, card, out)


def test_a_scale_of_the_inputs_is_refused_with_a_remedy(tmp_path):
    files = saved(tmp_path, chain([node("Mul", "x s", "z"), node("MatMul", "z w", "y")], {"w": W, "s": B[:4]}))
    with pytest.raises(UsageError, match="fold a scale of the inputs into the first layer's weights"):
        import_(*files)


@pytest.mark.parametrize(("declared", "seen", "takes"), [(4, 6, 4), (7, 4, 7), ("inputs", 6, 4)])
def test_a_graph_and_an_observation_have_as_many_numbers(tmp_path, declared, seen, takes):
    proto = chain([node("Gemm", "x w b", "y")], {"w": W, "b": B}, inputs=declared)
    graph, card, out = saved(tmp_path, proto, {"layers": [seen, 6]})
    with pytest.raises(UsageError) as error:
        import_(graph, card, out)
    assert str(error.value) == (
        f"{graph}: its input 'x' takes {takes} numbers, but an observation has {seen} ([agent.observation] of "
        f"{card}); they must be the same"
    )


def test_an_integer_input_is_refused(tmp_path):
    proto = chain([node("Gemm", "x w b", "y")], {"w": W, "b": B})
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    with pytest.raises(UsageError, match="input 'x' is of INT64, must be of FLOAT or DOUBLE"):
        import_(*saved(tmp_path, proto, {"layers": [4, 6]}))


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ('name = "mine"', 'name = "Mine"', '{card}: name is "Mine", must be 1 to 64 small letters'),
        ('name = "mine"', 'name = "mine"\nextra = 1', "{card}: unknown field `extra`"),
        ("rtt_ratio", "rtt_of_mine", "{card}: agent: unknown feature 'rtt_of_mine'"),
        ("4.0,", "4.0, 9.0,", "{card}: the action needs 7 outputs ([agent.action]), but [net] has 6"),
        ('name = "mine"', 'name = "mine"\ntraining = 1', "{card}: training is 1, must be a table: [training]"),
        (None, None, "{graph}: tensor layers.0.bias: number 0 is NaN, must be finite"),
    ],
)
def test_a_refused_import_names_a_file_that_was_given(tmp_path, before, after, says):
    bias = B if before else np.full(6, np.nan)
    graph, card, out = saved(tmp_path, chain([node("Gemm", "x w b", "y")], {"w": W, "b": bias}), {"layers": [4, 6]})
    if before:
        text = card.read_text()
        assert before in text
        card.write_text(text.replace(before, after, 1))
    with pytest.raises(UsageError) as error:
        import_(graph, card, out)
    assert str(error.value).startswith(says.format(card=card, graph=graph))
    assert not out.exists()


def headway(*arguments, given=b""):
    """The command, whose standard output may be a graph."""
    words = [sys.executable, "-m", "headway", *map(str, arguments)]
    return subprocess.run(words, input=given, capture_output=True, timeout=600, check=False)


def test_a_graph_can_be_written_to_and_read_from_a_pipe(tmp_path):
    exported = headway("models", "export", FOLDER, "--onnx", "-")
    assert exported.returncode == 0, exported.stderr
    card, out = FOLDER / "card.toml", tmp_path / "out"
    done = headway("models", "import", "--onnx", "-", "--card", card, "--out", out, given=exported.stdout)
    assert (done.returncode, done.stderr) == (0, b"")
    found = tomllib.loads((out / "card.toml").read_text())["training"]
    assert found["imported_from"] == "standard input"
    assert found["imported_sha256"] == sha256(exported.stdout).hexdigest()
    (tmp_path / "tiny.onnx").write_bytes(exported.stdout)
    words = ("models", "import", "--onnx", tmp_path / "tiny.onnx", "--card", "-", "--out", tmp_path / "again")
    assert headway(*words, given=card.read_bytes()).returncode == 0
    assert (tmp_path / "again/weights.safetensors").read_bytes() == (out / "weights.safetensors").read_bytes()


def test_a_graph_from_a_stream_cannot_have_external_weights(tmp_path):
    proto = chain([node("Gemm", "x w b", "y")], {"w": W, "b": B})
    graph, card, out = saved(tmp_path, proto, {"layers": [4, 6]})
    onnx.save_model(proto, graph, save_as_external_data=True, location="net.onnx.data", size_threshold=0)
    words = ("models", "import", "--card", card, "--out", out, "--onnx")
    done = headway(*words, "-", given=graph.read_bytes())
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == (
        "headway: standard input: its weights are in 'net.onnx.data', and a stream has no file next to it; "
        "give the path of the .onnx file\n"
    )
    done = headway(*words[:2], "--card", "-", "--out", out, "--onnx", "-")
    assert (done.returncode, done.stderr.decode()) == (
        2,
        "headway: --onnx - --card -: both cannot come from standard input; give a file for one\n",
    )
    assert not out.exists()


@pytest.mark.parametrize("operator", ["ConstantOfShape", "Expand", "Tile"])
def test_a_small_graph_that_makes_a_huge_constant_is_refused(operator):
    """A node makes ten thousand million numbers from one.

    It is refused by its shape, before it is computed.
    """
    import onnx

    from headway.models.fold_onnx import fold

    helper = onnx.helper
    shape = helper.make_tensor("shape", onnx.TensorProto.INT64, [1], [10**10])
    one = helper.make_tensor("one", onnx.TensorProto.FLOAT, [1], [1.0])
    given = ["shape"] if operator == "ConstantOfShape" else ["one", "shape"]
    output = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node(operator, given, ["y"])], "huge", [], [output], [one, shape])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    with pytest.raises(UsageError, match=f"{operator}.: makes 10,000,000,000 numbers of its constants"):
        fold(onnx, proto)


def test_a_constant_of_unknown_size_is_not_computed(tmp_path):
    """ONNX cannot infer the size of this OneHot, which is its depth: ten thousand million here."""
    nodes = [
        *(constant("at", [0], np.int64), constant("depth", 1e10, np.float64), constant("two", [0.0, 1.0])),
        *(node("OneHot", "at depth two", "w2"), node("MatMul", "x w2", "y")),
    ]
    with pytest.raises(UsageError, match=r"'/w2' .OneHot.: cannot be worked out of its constants: how many"):
        import_(*saved(tmp_path, chain(nodes, {"w": W})))


def test_a_state_of_too_many_numbers_is_refused():
    proto = chain([FIRST, node("Identity", "h", "h2")], {"w": W}, out="a")
    proto.graph.input.append(helper.make_tensor_value_info("h", TensorProto.FLOAT, [1, 10**10]))
    proto.graph.output.append(helper.make_tensor_value_info("h2", TensorProto.FLOAT, None))
    with pytest.raises(UsageError, match="input 'h' is a state of 10,000,000,000 numbers; at most 50 million"):
        rollout(proto, np.zeros((1, 4), np.float32))
