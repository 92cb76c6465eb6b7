"""Imported graphs that limit their action: the limit is that of their card, or they are refused."""

import numpy as np
import pytest
from onnx import helper

from headway._native import UsageError
from headway.models import load
from headway.models.from_onnx import import_
from onnx_graphs import BOUNDS, LAYER, RNG, chain, limited, saved, steering_card


@pytest.mark.parametrize(
    "nodes",
    [
        [("Clip", ["raw", "low", "high"], "y")],
        [("Clip", ["raw", "", "high"], "y")],
        [("Min", ["raw", "high"], "a"), ("Max", ["low", "a"], "y")],
        [("Clip", ["raw", "low", "high"], "a"), ("Identity", ["a"], "y")],
        [("Identity", ["raw"], "a"), ("Clip", ["a", "low", "high"], "y")],
        [("Clip", ["raw", "never", "ever"], "y")],
        [("Clip", ["raw", "low", "ever"], "y")],
        [("Clip", ["raw", "never", "ever"], "a"), ("Min", ["a", "high"], "y")],
    ],
)
def test_a_final_limit_equal_to_the_actions_is_left_out(tmp_path, nodes):
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
        ([("Clip", ["raw", "ever", "never"], "y")], "limits the action to inf and -inf"),
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
