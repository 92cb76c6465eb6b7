"""A model folder from an ONNX graph."""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headway._native import UsageError, check_agent
from headway.extras import need
from headway.files import called, replaceable
from headway.models.fold_onnx import STANDARD, fold, titled
from headway.models.folder import CARD, GOLDEN, WEIGHTS
from headway.models.run_onnx import TOLERANCE, rollout
from headway.models.to_onnx import GATES, LEAKY_SLOPE, OPERATORS
from headway.models.writer import weights_file, write

if TYPE_CHECKING:
    from headway.models.net import MaskCard, NetCard

Array = np.ndarray[Any, Any]

ROWS = 256
"""Observations whose outputs by the graph have to be those of the folder's weights."""
SHAPES = {"Identity", "Squeeze", "Unsqueeze", "Flatten", "Reshape", "Transpose", "Dropout", "Cast"}
"""Operators that change no number; that they change no order either, the outputs show."""
ASIDE = {"Shape", "Slice", "Split", "Gather", "Expand", "ConstantOfShape", "Concat"}
"""Operators that make up initial states and shapes."""
MALFORMED = (AttributeError, LookupError, TypeError, ValueError)
"""What a graph raises whose nodes lack an input, or whose tensors have another shape than ONNX
says."""
MADE_HERE = ("format", "spec_version", "agent_hash", "weights_sha256", "golden_sha256")
"""Keys of a card that the import writes itself."""


def import_(graph: Path, card: Path, out: Path, output: str | None = None) -> str:
    """Writes the folder `out` of an ONNX graph and a card; returns the model's id.

    The graph is a chain of Gemm, or MatMul and Add, with Tanh, Relu, LeakyRelu (0.01), Sigmoid or
    nothing behind each, after any number of GRU or LSTM, after a mask as `to_onnx` writes it or
    none. What is made of constants alone is one too. The golden outputs are what the graph itself
    makes of random observations, so a graph that was misread is refused.

    Of several outputs the one whose name has `action` in it is taken; where none or several have
    it, the first, which standard error is told. A Clip at the end, or Min and Max, is left out
    where it is the limit of the card's action.

    Args:
        graph: The .onnx file. It may be a pipe, and `-` is standard input; its weights are then
            within it.
        card: TOML with name, version and `[agent]`. It may have a description, `[training]` and
            `[evaluation]`. The last two are dropped if they describe a model with other weights. A
            `[net]` must be the graph's.
        out: The folder; nothing may be there.
        output: Which output is the action.

    Raises:
        UsageError: A file cannot be read; there is no such output; the graph is something else; the
            loader refuses the model.
    """
    if str(graph) == str(card) == "-":
        raise UsageError("--onnx - --card -: both cannot come from standard input; give a file for one")
    wanted, weights_of, seen = _card(card)
    given = called(str(graph))
    try:
        data = _source(graph).read_bytes()
        onnx = need("onnx")
        proto = onnx.load_model_from_string(data)
    except OSError as error:
        raise UsageError(f"{given}: {error.strerror}; give an .onnx file") from None
    except Exception as error:  # protobuf's DecodeError, which onnx does not export
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{given}: not a whole .onnx file") from None
    if not proto.graph.output:
        raise UsageError(f"{given}: has no output; not a whole .onnx file")
    digest = _with_data(onnx, proto, graph, data)
    _action_only(proto, given, output)
    try:
        fold(onnx, proto)
        _without_limit(proto, wanted["agent"])
        net, tensors = network(proto)
        _check_width(proto, net, seen, card)
        scale = np.geomspace(0.01, 10, ROWS)[:, np.newaxis]
        noise = np.random.default_rng(0).standard_normal((ROWS, net["layers"][0]))
        observations = (scale * noise).astype(np.float32)
        outputs = rollout(proto, observations)
    except UsageError as error:
        raise UsageError(f"{given}: {error}") from None
    except MALFORMED as error:
        raise UsageError(f"{given}: not as ONNX has it: {type(error).__name__}: {error}") from None
    if "net" in wanted and wanted["net"] != net:
        raise UsageError(f"{card}: [net] is {wanted['net']}, but the graph's is {net}; leave [net] out")
    source = {"imported_from": given if _is_stream(graph) else graph.name, "imported_sha256": digest}
    if weights_of not in (None, hashlib.sha256(weights_file(tensors)).hexdigest()):
        # The card is another model's: how that one was trained, and what was measured of it, is not
        # of this one.
        wanted = {key: value for key, value in wanted.items() if key not in ("training", "evaluation")}
    training = {**wanted.get("training", {}), **source}
    try:
        return write(out, {**wanted, "net": net, "training": training}, tensors, (observations, outputs))
    except UsageError as error:
        raise UsageError(_of_given(str(error), out, card, given)) from None


def _source(path: Path) -> Path:
    """The file to read: `-` is standard input."""
    return Path("/dev/stdin") if str(path) == "-" else path


def _is_stream(path: Path) -> bool:
    """Is it standard input, another open file, a pipe or a device? Then no file lies next to it."""
    return str(path) == "-" or not replaceable(path)


def _of_given(said: str, out: Path, card: Path, graph: str) -> str:
    """What the loader says of the folder that was not written.

    It is said of the files that were given.
    """
    if "golden.npz: row" in said and "by the weights" in said:
        return f"{graph}: is no plain chain of layers: its outputs are not those of its weights within {TOLERANCE}"
    # The user has not seen the card's new text, so a line's number would tell nothing.
    said = re.sub(r": line \d+: ", ": ", said.replace(f"{out / CARD}: ", f"{card}: ", 1), count=1)
    for name in (WEIGHTS, GOLDEN):
        said = said.replace(f"{out / name}: ", f"{graph}: ", 1)
    return said


def _check_width(proto: Any, net: NetCard, seen: int, card: Path) -> None:
    """Raises UsageError unless the graph takes as many numbers as the card's observation has."""
    first = _inputs(proto)[0]
    takes = net["layers"][0]
    declared = [one.dim_value for one in first.type.tensor_type.shape.dim]
    # The steps of an observation may have an axis of their own, which a Flatten takes away.
    if declared and all(declared[1:]) and takes not in {declared[-1], math.prod(declared[1:])}:
        takes = declared[-1]
    if takes != seen:
        raise UsageError(
            f"its input '{first.name}' takes {takes} numbers, but an observation has {seen} ([agent.observation] "
            f"of {card}); they must be the same"
        )


def _with_data(onnx: Any, proto: Any, graph: Path, data: bytes) -> str:
    """Loads weights that lie in files next to the graph.

    Returns the SHA-256 of the graph and of those files. Raises UsageError where one is missing.
    """
    digest = hashlib.sha256(data)
    outside = onnx.external_data_helper.uses_external_data
    tensors = [*proto.graph.initializer, *(a.t for node in proto.graph.node for a in node.attribute)]
    entries = [e for t in tensors if outside(t) for e in t.external_data]
    for name in sorted({entry.value for entry in entries if entry.key == "location"}):
        file = graph.parent / name
        if _is_stream(graph):
            raise UsageError(
                f"{called(str(graph))}: its weights are in '{name}', and a stream has no file next to it; give the "
                "path of the .onnx file"
            )
        if Path(name).is_absolute() or ".." in Path(name).parts or not file.is_file():
            raise UsageError(
                f"{graph}: its weights are in '{name}', which is not next to it; copy both into one folder"
            )
        digest.update(file.read_bytes())
    try:
        onnx.load_external_data_for_model(proto, str(graph.parent))
    except Exception as error:  # onnx has an error of its own for each cause
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise UsageError(f"{graph}: its weights next to it cannot be read: {why}") from None
    return digest.hexdigest()


def _action_only(proto: Any, graph: str, wanted: str | None) -> None:
    """Takes out what the action does not need, such as a value head.

    Raises UsageError for no output. A graph with states as further inputs has them as outputs too,
    and stays as it is.
    """
    constants = {tensor.name for tensor in proto.graph.initializer}
    outputs = {output.name: output for output in proto.graph.output}
    known = ", ".join(outputs)
    if wanted is not None and wanted not in outputs:
        raise UsageError(f"--output '{wanted}': no output of {graph}; there are {known}")
    first = next(iter(outputs))
    if sum(value.name not in constants for value in proto.graph.input) != 1:
        if wanted not in (None, first):
            raise UsageError(f"--output '{wanted}': {graph} has states, and its action comes first: {known}")
        return
    named = [name for name in outputs if "action" in name.lower()]
    others = [name for name in outputs if not any(word in name.lower() for word in ("value", "critic"))]
    sure = named if len(named) == 1 else others
    chosen = wanted or next(iter(sure), first)
    if wanted is None and len(outputs) > 1 and len(sure) != 1:
        print(
            f"headway: warning: {graph}: of its outputs {known} {chosen} is taken for the action; "
            "name another with --output",
            file=sys.stderr,
        )
    del proto.graph.output[:]
    proto.graph.output.append(outputs[chosen])
    _needed_only(proto)


def _needed_only(proto: Any) -> None:
    """Takes out the nodes that no output needs."""
    needed = {output.name for output in proto.graph.output}
    for node in reversed(proto.graph.node):
        if needed & set(node.output):
            needed |= set(node.input)
    kept = [node for node in proto.graph.node if needed & set(node.output)]
    del proto.graph.node[:]
    proto.graph.node.extend(kept)


def _without_limit(proto: Any, agent: Any) -> None:
    """Takes out what clips the first output at its end to the limit of the agent's action.

    Raises UsageError where it clips to something else.
    """
    onnx = need("onnx")
    constants = _constants(onnx, proto)
    makers = {output: node for node in proto.graph.node for output in node.output}
    name = proto.graph.output[0].name
    while (node := makers.get(name)) and node.op_type in {"Clip", "Min", "Max"} | SHAPES:
        inner = next((one for one in node.input if one not in constants), name)
        if inner == name:
            # Of constants alone.
            break
        if node.op_type not in SHAPES:
            _check_limit(node, _bounds(onnx, node, constants), _limits(agent))
            for follower in proto.graph.node:
                follower.input[:] = [inner if one == name else one for one in follower.input]
            if name == proto.graph.output[0].name:
                proto.graph.output[0].name = inner
        name = inner
    _needed_only(proto)


def _bounds(onnx: Any, node: Any, constants: dict[str, Array]) -> list[tuple[int, Any]]:
    """What a Clip, Min or Max keeps numbers above (-1) or below (1); None for no constant."""
    if node.op_type != "Clip":
        side = 1 if node.op_type == "Min" else -1
        return [(side, constants[name]) for name in node.input if name in constants]
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    found = [(side, attributes[key]) for side, key in ((-1, "min"), (1, "max")) if key in attributes]
    given = zip((-1, 1), node.input[1:], strict=False)
    return [*found, *((side, constants.get(name)) for side, name in given if name)]


def _limiting(bounds: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """Those that keep any number away: an infinite one does not."""
    return [one for one in bounds if one[1] is None or not np.all(np.asarray(one[1]) == one[0] * np.inf)]


def _check_limit(node: Any, bounds: list[tuple[int, Any]], limits: Array | None) -> None:
    """Raises UsageError unless the bounds are the limits of an action, one or one for each."""

    def fits(side: int, value: Any) -> bool:
        bound = np.float32(np.nan if value is None else value).ravel()
        return limits is not None and bound.size in (1, limits.size) and bool((bound == side * limits).all())

    if bounds and all(fits(side, value) for side, value in _limiting(bounds)):
        return
    found = " and ".join("no constant" if value is None else str(np.squeeze(value)) for _, value in bounds)
    wanted = "is none" if limits is None else f"is {limits[0]:g}"
    raise UsageError(
        f"{titled(node)}: limits the action to {found or 'nothing'}, but "
        f"the limit of the card's [agent.action] {wanted}; make them equal, or leave the node out"
    )


def _limits(agent: Any) -> Array | None:
    """The largest of each number of an action, either way; None for an action that has no limit."""
    spec = json.loads(check_agent(json.dumps(agent))[0])
    if "limit" not in spec["action"]:
        return None
    return np.array([spec["action"]["limit"], 1.0][: 1 + (spec["clock"]["kind"] == "chosen")], dtype=np.float32)


def _constants(onnx: Any, proto: Any) -> dict[str, Array]:
    """The graph's constants by name."""
    return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}


def _inputs(proto: Any) -> list[Any]:
    """What the graph is given, which older ones declare among their constants."""
    constants = {tensor.name for tensor in proto.graph.initializer}
    return [value for value in proto.graph.input if value.name not in constants]


def _card(path: Path) -> tuple[dict[str, Any], str | None, int]:
    """What the card says, the hash of its weights, and an observation's length.

    The hash is of the weights that the card was written for.
    """
    try:
        card = tomllib.loads(_source(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(
            f"{called(str(path))}: {error.strerror}; give a card.toml with name, version and [agent]"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{called(str(path))}: {error}") from None
    for key in ("name", "version", "agent"):
        if key not in card:
            raise UsageError(f"{path}: {key} is missing; a card has name, version and [agent]")
    for key in ("agent", "training", "evaluation"):
        if not isinstance(card.get(key, {}), dict):
            raise UsageError(f"{path}: {key} is {card[key]!r}, must be a table: [{key}]")
    try:
        seen = json.loads(check_agent(json.dumps(card["agent"]))[0])["observation"]
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    except TypeError:
        raise UsageError(f"{path}: [agent] has a date or a time; write numbers and texts") from None
    kept = {key: value for key, value in card.items() if key not in MADE_HERE}
    return kept, card.get("weights_sha256"), seen.get("rows", 1) * seen["history"] * len(seen["features"])


def network(proto: Any) -> tuple[NetCard, dict[str, Array]]:
    """The graph as a card's `[net]` and its tensors.

    Raises UsageError where it is no such network.
    """
    onnx = need("onnx")
    constants = _constants(onnx, proto)
    inputs = _inputs(proto)
    if not inputs or not proto.graph.output:
        raise UsageError("the graph has no input or no output")
    chain = _Chain(onnx, constants, {output: node for node in proto.graph.node for output in node.output})
    name = inputs[0].name
    while name != proto.graph.output[0].name:
        users = [n for n in proto.graph.node if name in n.input]
        followers = [n for n in users if n.op_type not in ASIDE] or users
        if len(followers) != 1 or followers[0].op_type in ASIDE:
            where = ": " + ", ".join(map(titled, followers)) if followers else ""
            raise UsageError(
                f"'{name}' goes to {len(followers)} nodes{where}; a network here is one chain of layers"
            )
        try:
            chain.take(followers[0], name)
            name = followers[0].output[0]
        except UsageError:
            raise
        except MALFORMED:
            why = "its inputs and weights are not as ONNX has them; check them with onnx.checker"
            raise UsageError(f"{titled(followers[0])}: {why}") from None
    return chain.net(), chain.tensors


class _Chain:
    """The layers met so far."""

    def __init__(self, onnx: Any, constants: dict[str, Array], makers: dict[str, Any]) -> None:
        self.onnx = onnx
        self.constants = constants
        self.makers = makers
        """The node of each output."""
        self.mask: MaskCard | None = None
        self.kind = "mlp"
        self.recurrent: list[int] = []
        self.dense: list[int] = []
        self.inputs = 0
        self.activations: list[str] = []
        self.tensors: dict[str, Array] = {}

    def net(self) -> NetCard:
        layers = [self.inputs, *self.recurrent, *self.dense]
        net: NetCard = {"kind": self.kind, "layers": layers, "activations": self.activations}
        if len(self.recurrent) > 1:
            net["recurrent_layers"] = len(self.recurrent)
        if self.mask is not None:
            net["mask"] = self.mask
        if len(layers) < 2:
            raise UsageError("the graph has no layer")
        return net

    def take(self, node: Any, x: str) -> None:
        """The next node, whose input `x` is."""
        attributes = {a.name: self.onnx.helper.get_attribute_value(a) for a in node.attribute}
        names = {operator: ours for ours, operator in OPERATORS.items()}
        operator = node.op_type
        if node.domain not in STANDARD:
            raise self._refused(node, f"is of the domain {node.domain}, must be one of ONNX's own operators")
        if operator in SHAPES:
            self._check_shape(node, attributes)
            return
        if operator in names:
            self._activate(node, names[operator], attributes)
        elif operator == "Gemm":
            self._gemm(node, x, attributes)
        elif operator == "MatMul" and node.input[0] == x:
            self._layer(node, self._constant(node, 1).T, None)
        elif operator == "Add":
            self._bias(node, x)
        elif operator == "Mul":
            self._mask(node, x)
        elif operator in {"GRU", "LSTM"}:
            self._recurrent(node, operator.lower(), attributes)
        elif operator == "Clip":
            bounds = _bounds(self.onnx, node, self.constants)
            if bounds and not _limiting(bounds):
                return
            raise self._refused(node, "must be the last, and the limit of the card's [agent.action]; leave it out")
        else:
            raise self._refused(node)

    def _refused(self, node: Any, why: str = "") -> UsageError:
        about = why or "a network here is Gemm, MatMul and Add, Tanh, Relu, LeakyRelu, Sigmoid, GRU and LSTM"
        return UsageError(f"{titled(node)}: {about}")

    def _check_shape(self, node: Any, attributes: dict[str, Any]) -> None:
        """Raises UsageError for a Cast that loses precision, or a Dropout that drops.

        A Cast may not lead to what is less exact than our weights.
        """
        known = self.onnx.TensorProto
        if node.op_type == "Cast" and attributes["to"] not in {known.FLOAT, known.DOUBLE}:
            name = known.DataType.Name(attributes["to"])
            raise self._refused(node, f"casts to {name}, must cast to FLOAT or DOUBLE")
        if node.op_type == "Dropout" and len(node.input) > 2 and node.input[2] and self._constant(node, 2).any():
            raise self._refused(node, "drops numbers, as in training; export the network after its eval()")

    def _constant(self, node: Any, index: int) -> Array:
        name = node.input[index]
        if name not in self.constants:
            raise self._refused(node, f"its input '{name}' is not a constant")
        return np.asarray(self.constants[name], dtype=np.float32)

    def _layer(self, node: Any, weight: Array, bias: Array | None) -> None:
        if weight.ndim != 2:
            raise self._refused(node, f"its weights have {weight.ndim} dimensions, must have 2")
        n, (outputs, inputs) = len(self.dense), weight.shape
        before = [self.inputs, *self.recurrent, *self.dense][-1]
        if inputs != (before or inputs):
            raise self._refused(node, f"its weights take {inputs} numbers, but it is given {before}")
        self.inputs = self.inputs or inputs
        self.dense.append(outputs)
        self.activations.append("identity")
        self.tensors[f"layers.{n}.weight"] = weight
        self.tensors[f"layers.{n}.bias"] = self._one_each(node, np.zeros(1, np.float32) if bias is None else bias)

    def _one_each(self, node: Any, bias: Array) -> Array:
        """A bias of the last layer, one number an output, of such or of one number for all."""
        if bias.size not in (1, self.dense[-1]):
            raise self._refused(node, f"its bias has {bias.size} numbers, its layer {self.dense[-1]} outputs")
        return np.broadcast_to(bias.reshape(-1), self.dense[-1])

    def _gemm(self, node: Any, x: str, attributes: dict[str, Any]) -> None:
        plain = attributes.get("alpha", 1.0) == 1 and attributes.get("beta", 1.0) == 1
        if node.input[0] != x or attributes.get("transA", 0) or not plain:
            raise self._refused(node, "must be the input times weights plus bias, with alpha and beta 1")
        weight = self._constant(node, 1)
        bias = self._constant(node, 2) if len(node.input) > 2 and node.input[2] else None
        self._layer(node, weight if attributes.get("transB", 0) else weight.T, bias)

    def _bias(self, node: Any, x: str) -> None:
        bias = self._constant(node, 1 if node.input[0] == x else 0)
        if not self.dense or self.activations[-1] != "identity":
            raise self._refused(node, "must add a bias to a Gemm or MatMul, one number an output")
        key = f"layers.{len(self.dense) - 1}.bias"
        self.tensors[key] = self.tensors[key] + self._one_each(node, bias)

    def _activate(self, node: Any, ours: str, attributes: dict[str, Any]) -> None:
        if not self.dense or self.activations[-1] != "identity":
            raise self._refused(node, "must follow a dense layer, and only one activation each")
        if ours == "leaky-relu" and abs(attributes.get("alpha", 0.01) - LEAKY_SLOPE) > 1e-9:
            raise self._refused(node, f"slope {attributes['alpha']:g}, must be {LEAKY_SLOPE}")
        self.activations[-1] = ours

    def _mask(self, node: Any, x: str) -> None:
        """The last node of a mask, which multiplies the inputs."""
        if self.inputs or node.input[0] != x:
            raise self._refused(node)
        # From its other input back to where the inputs are read: each node's operator, and its
        # constant's place.
        found = []
        name = node.input[1]
        for operator in ("Add", "MatMul", "Reshape", "Mul", "Sigmoid", "Add", "Mul", "Gather"):
            maker = self.makers.get(name)
            if maker is None or maker.op_type != operator:
                cure = "fold a scale of the inputs into the first layer's weights"
                raise self._refused(node, f"must be a mask as `headway models` exports it; {cure}")
            found.append(maker)
            name = maker.input[0]
        _, places, _, _, _, bias, weight, gather = found
        known = self.constants[gather.input[1]].ravel()
        at = self._constant(places, 1).argmax(axis=1)
        intervals = len(known)
        inputs = self._constant(places, 1).shape[1]
        self.mask = {
            "features": inputs // intervals,
            "known": int(known[0]),
            "masked": at[: len(at) // intervals].tolist(),
        }
        self.tensors["mask.weight"] = self._constant(weight, 1)
        self.tensors["mask.bias"] = self._constant(bias, 1)

    def _recurrent(self, node: Any, kind: str, attributes: dict[str, Any]) -> None:
        known = {"hidden_size", "linear_before_reset", "direction"}
        if attributes.get("direction", b"forward") != b"forward" or set(attributes) - known:
            raise self._refused(node, "must run forward, with the usual activations and no clipping")
        if kind == "gru" and not attributes.get("linear_before_reset", 0):
            raise self._refused(node, "linear_before_reset is 0, must be 1, as PyTorch's is")
        if self.dense or (self.recurrent and self.kind != kind):
            raise self._refused(node, "recurrent layers come first, and are of one kind")
        weight, hidden = self._constant(node, 1)[0], self._constant(node, 2)[0]
        units = hidden.shape[1]
        bias = np.zeros(2 * len(hidden), np.float32)
        if len(node.input) > 3 and node.input[3]:
            bias = self._constant(node, 3)[0]
        n = len(self.recurrent)
        parts = {
            "weight_ih": weight,
            "weight_hh": hidden,
            "bias_ih": bias[: len(hidden)],
            "bias_hh": bias[len(hidden) :],
        }
        for name, part in parts.items():
            blocks = np.split(part, len(GATES[kind]))
            order = np.argsort(GATES[kind])
            self.tensors[f"{kind}.{name}_l{n}"] = np.concatenate([blocks[gate] for gate in order])
        self.kind = kind
        self.inputs = self.inputs or weight.shape[1]
        self.recurrent.append(units)
