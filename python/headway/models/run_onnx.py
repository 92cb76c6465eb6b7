"""A graph at work for one flow, by ONNX's own reference evaluator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headway._native import UsageError
from headway.extras import need
from headway.models.fold_onnx import MOST_NUMBERS

Array = np.ndarray[Any, Any]

TOLERANCE = 1e-5
"""How far outputs may be off, over the largest of them, 1 at least. The loader has the same."""


def rollout(proto: Any, observations: Array) -> Array:
    """What a graph puts out for one flow's successive `observations` [n, inputs]: [n, outputs].

    Inputs beyond the first are state: zeros at first, then what the outputs beyond the first were.
    A graph over sequences without such inputs is shown them all at once.

    Raises:
        UsageError: It cannot be run that way.
    """
    onnx = need("onnx")
    constants = {tensor.name for tensor in proto.graph.initializer}
    first, *states = [value for value in proto.graph.input if value.name not in constants]
    outputs = [value.name for value in proto.graph.output]
    rank = len(first.type.tensor_type.shape.dim)
    if rank not in {1, 2, 3}:
        raise UsageError(
            f"input '{first.name}' has {rank} dimensions; must be [batch, inputs] or [steps, batch, inputs]"
        )

    kind = first.type.tensor_type.elem_type
    if kind not in {onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE}:
        name = onnx.TensorProto.DataType.Name(kind)
        raise UsageError(f"input '{first.name}' is of {name}, must be of FLOAT or DOUBLE")

    def cannot(error: Exception) -> UsageError:
        # Whatever goes wrong in somebody else's graph.
        why = " ".join(str(error).split())
        return UsageError(f"the graph cannot be run: {type(error).__name__}: {why}")

    try:
        evaluator = need("onnx.reference").ReferenceEvaluator(proto)
    except Exception as error:
        raise cannot(error) from None

    def run(feeds: dict[str, Array]) -> list[Array]:
        try:
            found: list[Array] = evaluator.run(None, feeds)
        except Exception as error:
            raise cannot(error) from None
        return found

    rows = observations.astype(onnx.helper.tensor_dtype_to_np_dtype(kind))
    if rank == 3 and not states:
        axis = 1 if _batch_first(proto, first.name) else 0
        return np.asarray(run({first.name: np.expand_dims(rows, 1 - axis)})[0]).reshape(len(rows), -1)
    shapes = {state.name: [d.dim_value or 1 for d in state.type.tensor_type.shape.dim] for state in states}
    for name, shape in shapes.items():
        if math.prod(shape) > MOST_NUMBERS:
            raise UsageError(f"input '{name}' is a state of {math.prod(shape):,} numbers; at most 50 million")
    memory = [np.zeros(shape, np.float32) for shape in shapes.values()]
    if len(outputs) != 1 + len(states):
        raise UsageError(f"{len(states)} inputs of state, but {len(outputs) - 1} outputs of it; must be as many")
    found = []
    for row in rows:
        names = [state.name for state in states]
        feeds = {first.name: row.reshape([1] * (rank - 1) + [-1]), **dict(zip(names, memory, strict=True))}
        output, *memory = run(feeds)[: 1 + len(states)]
        found.append(np.asarray(output).reshape(-1))
    return np.stack(found)


def _batch_first(proto: Any, name: str) -> bool:
    """Are the axes of the input swapped before anything else?

    PyTorch does so for batch_first=True.
    """
    return any(node.op_type == "Transpose" and name in node.input for node in proto.graph.node)
