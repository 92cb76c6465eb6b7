"""What a graph makes of constants alone becomes a constant."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headway._native import UsageError
from headway.extras import need

RANDOM = {"Bernoulli", "Dropout", "Multinomial"}
"""Operators that draw numbers, besides those whose names begin with Random."""
MOST_NUMBERS = 50_000_000
"""In a constant that is worked out: far more than a network has that decides within
microseconds."""
SHRINKS = {"Compress", "NonZero", "Unique"}
"""Operators that make about as many numbers as they are given, or fewer: how many shows only
then."""
STANDARD = {"", "ai.onnx"}
"""Names of the domain of ONNX's own operators."""


def titled(node: Any) -> str:
    """The node in a message: its name, or else its first output, and its operator."""
    return f"node '{node.name or ''.join(node.output[:1])}' ({node.op_type})"


def fold(onnx: Any, proto: Any) -> None:
    """Makes initializers of what nodes make of constants alone, such as a Transpose of weights.

    PyTorch's exporter leaves such nodes in the graph with do_constant_folding=False, and some of
    them in any case.

    Raises:
        UsageError: One of them cannot be worked out.
    """
    graph = proto.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    left = []
    for node in graph.node:
        if not (set(node.input) <= {"", *constants} and _always_the_same(node)):
            left.append(node)
            continue
        given = [constants[name] for name in node.input if name]
        for name, value in _outputs(onnx, proto, node, given).items():
            constants[name] = onnx.numpy_helper.from_array(np.asarray(value), name)
            graph.initializer.append(constants[name])
    del graph.node[:]
    graph.node.extend(left)


def _always_the_same(node: Any) -> bool:
    # A node with a graph of its own, such as If, reads more than its inputs.
    has_graph = any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute)
    is_drawn = node.op_type in RANDOM or node.op_type.startswith("Random")
    return node.domain in STANDARD and not (has_graph or is_drawn)


def _outputs(onnx: Any, proto: Any, node: Any, given: list[Any]) -> dict[str, object]:
    """What the node alone makes of these initializers, by name."""
    helper = onnx.helper
    names = [name for name in node.output if name]
    outputs = [helper.make_empty_tensor_value_info(name) for name in names]
    graph = helper.make_graph([node], "constants", [], outputs, given)
    model = helper.make_model(graph, opset_imports=proto.opset_import, ir_version=proto.ir_version)
    for output in _inferred(model).graph.output:
        kind = output.type.tensor_type
        is_known = kind.HasField("shape") and all(d.HasField("dim_value") for d in kind.shape.dim)
        if not (is_known or node.op_type in SHRINKS):
            why = "how many numbers it makes cannot be told"
            raise UsageError(f"{titled(node)}: cannot be worked out of its constants: {why}")
        count = math.prod(d.dim_value for d in kind.shape.dim)
        if count > MOST_NUMBERS:
            raise UsageError(
                f"{titled(node)}: makes {count:,} numbers of its constants, must be at most 50 million"
            )
    try:
        found = need("onnx.reference").ReferenceEvaluator(model).run(None, {})
    except Exception as error:  # Whatever goes wrong in somebody else's graph.
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(f"{titled(node)}: cannot be worked out of its constants: {why}") from None
    return dict(zip(names, found, strict=True))


def _inferred(model: Any) -> Any:
    """The model with the shapes of its outputs, where they can be told."""
    try:
        return need("onnx.shape_inference").infer_shapes(model, data_prop=True)
    except Exception:  # Whatever is wrong with it, working it out says so.
        return model
