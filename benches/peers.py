"""Times one answer of networks in a peer, on one thread: `peers.py onnxruntime|torch CASE.json...`.

The cases are those of `crates/policy/examples/inference.rs`. The program prints
`{case: {"ns": median, "output": [...]}}`.
"""

import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROUNDS = 200
ANSWERS = 50

Case = dict[str, Any]
Answer = Callable[[np.ndarray], np.ndarray]


def tensors(case: Case) -> list[tuple[np.ndarray, np.ndarray]]:
    """Reads the weight [outputs, inputs] and the bias of each layer."""
    sizes = case["net"]["layers"]
    return [
        (
            np.array(case["tensors"][f"layers.{n}.weight"], np.float32).reshape(outputs, inputs),
            np.array(case["tensors"][f"layers.{n}.bias"], np.float32),
        )
        for n, (inputs, outputs) in enumerate(itertools.pairwise(sizes))
    ]


def in_onnxruntime(case: Case) -> Answer:
    """The network as a session of ONNX Runtime on the CPU."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    nodes, initializers, last = [], [], "x"
    for n, (weight, bias) in enumerate(tensors(case)):
        initializers += [numpy_helper.from_array(weight, f"w{n}"), numpy_helper.from_array(bias, f"b{n}")]
        nodes.append(helper.make_node("Gemm", [last, f"w{n}", f"b{n}"], [f"sums{n}"], transB=1))
        kind = {"tanh": "Tanh", "relu": "Relu", "identity": "Identity"}[case["net"]["activations"][n]]
        nodes.append(helper.make_node(kind, [f"sums{n}"], [f"y{n}"]))
        last = f"y{n}"
    sizes = case["net"]["layers"]
    graph = helper.make_graph(
        nodes,
        case["name"],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, sizes[0]])],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, [1, sizes[-1]])],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return lambda x: session.run(None, {"x": x})[0]


def in_torch(case: Case) -> Answer:
    """The network in PyTorch, in eager mode."""
    import torch

    torch.set_num_threads(1)
    kinds = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU, "identity": torch.nn.Identity}
    layers: list[torch.nn.Module] = []
    for (weight, bias), activation in zip(tensors(case), case["net"]["activations"], strict=True):
        layer = torch.nn.Linear(weight.shape[1], weight.shape[0])
        layer.weight.data, layer.bias.data = torch.from_numpy(weight), torch.from_numpy(bias)
        layers += [layer, kinds[activation]()]
    net = torch.nn.Sequential(*layers)

    def answer(x: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return net(torch.from_numpy(x)).numpy()

    return answer


def median_ns(answer: Answer, x: np.ndarray) -> float:
    """The median time of one answer, over rounds of many answers."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter_ns()
        for _ in range(ANSWERS):
            answer(x)
        times.append((time.perf_counter_ns() - start) / ANSWERS)
    return statistics.median(times)


def main() -> None:
    """Measures each case and prints the result."""
    make = {"onnxruntime": in_onnxruntime, "torch": in_torch}[sys.argv[1]]
    found = {}
    for path in sys.argv[2:]:
        case = json.loads(Path(path).read_text())
        x = np.array([case["input"]], np.float32)
        answer = make(case)
        found[case["name"]] = {"output": answer(x).ravel().tolist(), "ns": median_ns(answer, x)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
