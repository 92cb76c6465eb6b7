"""A model as an ONNX graph, for ONNX Runtime and whatever else reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headway._native import RunError, UsageError
from headway.extras import need

if TYPE_CHECKING:
    from headway.models.folder import Model
    from headway.models.net import NetCard

Array = np.ndarray[Any, Any]

OPSET, IR = 17, 8
"""Of 2022: what ONNX Runtime reads since 1.12."""
LEAKY_SLOPE = 0.01
"""Below zero, as PyTorch has it."""
OPERATORS = {"tanh": "Tanh", "relu": "Relu", "leaky-relu": "LeakyRelu", "sigmoid": "Sigmoid"}
"""Our activations and ONNX's; identity has no node."""
SLOPES = {"leaky-relu": {"alpha": LEAKY_SLOPE}}
"""Attributes of the nodes that have some."""
GATES = {"gru": (1, 0, 2), "lstm": (0, 3, 1, 2)}
"""ONNX's order of gates in PyTorch's: GRU z, r, h of r, z, n; LSTM i, o, f, c of i, f, g, o."""


def export(model: Model) -> tuple[bytes, float]:
    """The graph, and the largest difference of its outputs from the golden ones.

    A dense network maps `observation` [batch, inputs] to `output` [batch, outputs]. A recurrent one
    maps `observations` [steps, batch, inputs] to `outputs` [steps, batch, outputs], and `hidden_N`
    (an LSTM's `cell_N` too) [1, batch, units] of each layer N, zeros for a new flow, to
    `next_hidden_N` (`next_cell_N`).

    Raises:
        UsageError: The package onnx is missing, or the network is one of whole numbers.
        RunError: The graph is not valid, or its outputs differ by more than 1e-5.
    """
    net: NetCard = model.card["net"]
    if net["kind"] == "int8":
        raise UsageError(f"{model.title}: an int8 network has no ONNX graph; export the model that it was made of")
    onnx = need("onnx")
    graph = _Graph(onnx)
    tensors = model.tensors()
    recurrent = net["layers"][1 : 1 + _recurrent_layers(net)]
    single = "" if not recurrent else "s"
    x = graph.input(f"observation{single}", [*(["steps"] if recurrent else []), "batch", net["layers"][0]])
    if "mask" in net:
        x = _mask(graph, x, net, tensors, bool(recurrent))
    for n, units in enumerate(recurrent):
        x = _recurrent(graph, net["kind"], n, units, x, tensors)
    for n, activation in enumerate(net["activations"]):
        x = _dense(graph, n, x, tensors, bool(recurrent))
        if activation in OPERATORS:
            x = graph.node(OPERATORS[activation], [x], None, **SLOPES.get(activation, {}))
    graph.output(x, f"output{single}", [*(["steps"] if recurrent else []), "batch", net["layers"][-1]])
    proto = graph.model(model.title, {"headway_model": model.id})
    try:
        onnx.checker.check_model(proto, full_check=True)
    except onnx.checker.ValidationError as error:
        raise RunError(f"{model.title}: not a valid ONNX graph: {error}") from None
    return proto.SerializeToString(deterministic=True), _check(proto, model)


def _recurrent_layers(net: NetCard) -> int:
    return 0 if net["kind"] == "mlp" else int(net.get("recurrent_layers") or 1)


def _mask(graph: _Graph, x: str, net: NetCard, tensors: dict[str, Array], steps: bool) -> str:
    """The inputs times what the mask makes of them.

    That is 1, or sigmoid(weight x known + bias) where known is above 0.
    """
    inputs, mask = net["layers"][0], net["mask"]
    features, known, masked = mask["features"], mask["known"], mask["masked"]
    begins = np.arange(0, inputs, features)
    # Row after row, where the masked inputs are.
    places = np.eye(inputs, dtype=np.float32)[(begins[:, np.newaxis] + masked).ravel()]
    of_known = graph.constant("mask.known", begins[:, np.newaxis] + known)
    share = graph.node("Gather", [x, of_known], axis=-1)
    is_known = graph.node("Greater", [share, graph.constant("zero", np.zeros((), np.float32))])
    is_known = graph.node("Cast", [is_known], to=graph.onnx.TensorProto.FLOAT)
    weighed = graph.node("Mul", [share, graph.constant("mask.weight", tensors["mask.weight"])])
    weighed = graph.node("Add", [weighed, graph.constant("mask.bias", tensors["mask.bias"])])
    weighed = graph.node("Mul", [graph.node("Sigmoid", [weighed]), is_known])
    flat = graph.constant("mask.flat", np.array([0, 0, -1] if steps else [0, -1]))
    weighed = graph.node("Reshape", [weighed, flat])
    weighed = graph.node("MatMul", [weighed, graph.constant("mask.places", places)])
    scale = graph.node("Add", [weighed, graph.constant("mask.others", 1 - places.sum(axis=0))])
    return graph.node("Mul", [x, scale])


def _dense(graph: _Graph, n: int, x: str, tensors: dict[str, Array], steps: bool) -> str:
    weight, bias = tensors[f"layers.{n}.weight"], tensors[f"layers.{n}.bias"]
    b = graph.constant(f"layers.{n}.bias", bias)
    if not steps:
        return graph.node("Gemm", [x, graph.constant(f"layers.{n}.weight", weight), b], transB=1)
    # Gemm takes no sequences.
    product = graph.node("MatMul", [x, graph.constant(f"layers.{n}.weight", weight.T)])
    return graph.node("Add", [product, b])


def _recurrent(graph: _Graph, kind: str, n: int, units: int, x: str, tensors: dict[str, Array]) -> str:
    def gates(name: str) -> Array:
        """In ONNX's order, with its axis of directions."""
        blocks = np.split(tensors[f"{kind}.{name}_l{n}"], len(GATES[kind]))
        return np.concatenate([blocks[gate] for gate in GATES[kind]])[np.newaxis]

    weights = {
        "weight_ih": gates("weight_ih"),
        "weight_hh": gates("weight_hh"),
        "bias": np.concatenate([gates("bias_ih"), gates("bias_hh")], axis=1),
    }
    constants = [graph.constant(f"{kind}.{name}_l{n}", value) for name, value in weights.items()]
    shape = [1, "batch", units]
    states = ["hidden", "cell"] if kind == "lstm" else ["hidden"]
    inputs = [graph.input(f"{state}_{n}", shape) for state in states]
    outputs = [f"next_{state}_{n}" for state in states]
    attributes = {"linear_before_reset": 1} if kind == "gru" else {}
    # The empty name: sequences are all of one length.
    y = graph.node(kind.upper(), [x, *constants, "", *inputs], more=outputs, hidden_size=units, **attributes)
    for output in outputs:
        graph.declare(output, shape)
    return graph.node("Squeeze", [y, graph.constant("direction", np.array([1]))])


class _Graph:
    """A graph as it grows."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.constants: dict[str, object] = {}

    def input(self, name: str, shape: list[Any]) -> str:
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, self.onnx.TensorProto.FLOAT, shape))
        return name

    def declare(self, name: str, shape: list[Any]) -> None:
        self.outputs.append(self.onnx.helper.make_tensor_value_info(name, self.onnx.TensorProto.FLOAT, shape))

    def constant(self, name: str, value: Array) -> str:
        self.constants[name] = self.onnx.numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def node(self, operator: str, inputs: list[str], more: list[str] | None = None, **attributes: Any) -> str:
        name = f"{operator.lower()}_{len(self.nodes)}"
        outputs = [name, *(more or [])]
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, outputs, name=name, **attributes))
        return name

    def output(self, x: str, name: str, shape: list[Any]) -> None:
        self.nodes.append(self.onnx.helper.make_node("Identity", [x], [name], name=name))
        self.outputs.insert(0, self.onnx.helper.make_tensor_value_info(name, self.onnx.TensorProto.FLOAT, shape))

    def model(self, name: str, notes: dict[str, str]) -> Any:
        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, list(self.constants.values()))
        proto = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR, producer_name="headway"
        )
        helper.set_model_props(proto, notes)
        return proto


def _check(proto: Any, model: Model) -> float:
    """The largest difference from the golden outputs, over their largest, 1 at least.

    RunError beyond 1e-5.
    """
    from headway.models.run_onnx import TOLERANCE, rollout

    golden = model.golden()
    ours = rollout(proto, golden["observations"])
    if "outputs" in golden:
        theirs = golden["outputs"].reshape(ours.shape)
    elif ours.shape[1] == 1:
        theirs = golden["actions"].reshape(ours.shape)
    else:
        ours, theirs = ours.argmax(axis=1), golden["actions"]
    error = float(np.max(np.abs(ours - theirs)) / max(1.0, np.max(np.abs(theirs))))
    if not error <= TOLERANCE:
        raise RunError(
            f"{model.title}: the graph's outputs differ from the golden ones by {error:.1e}; not written"
        )
    return error
