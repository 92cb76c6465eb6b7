"""Graphs as other programs write them, and cards for them."""

import numpy as np
import tomli_w
from onnx import TensorProto, helper, numpy_helper


def card_of(net, name="mine"):
    """A card for observations of two or three features.

    Each output of the network stands for a change of the window.
    """
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
        "base": {"kind": "scheme", "name": "cubic"},
    }
    return {"name": name, "version": 1, "net": net, "agent": agent}


def chain(nodes, constants, inputs=4, out="y"):
    """A graph as other programs write them: `x` [batch, inputs] to `y`."""
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
    (tmp_path / "card.toml").write_text(tomli_w.dumps(card))
    return tmp_path / "net.onnx", tmp_path / "card.toml", tmp_path / "out"


def steering_card(path, inputs=4, **clock):
    """A card whose action is a number from -5 to 5."""
    card = card_of({"layers": [inputs, 1]})
    del card["net"]
    card["agent"]["action"] = {"kind": "continuous", "limit": 5.0, "effect": {"does": "scale-cwnd", "base": 2.0}}
    if clock:
        card["agent"]["clock"] = clock
    path.write_text(tomli_w.dumps(card))
    return path


LAYER = helper.make_node("Gemm", ["x", "w"], ["raw"], transB=1)
BOUNDS = {"w": RNG.normal(0, 3, (1, 4)), "low": -5.0, "high": 5.0, "seven": 7.0, "pair": [5.0, 5.0]}
BOUNDS |= {"never": -np.inf, "ever": np.inf}


def limited(*nodes, out="y"):
    """A graph of one layer and the given nodes after it."""
    return chain([LAYER, *nodes], BOUNDS, out=out)
