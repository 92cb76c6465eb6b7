"""The state table (section IV-A), and policies over it."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import models
from headway._native import UsageError, check_agent
from headway.tune.policy import Fixed, ModelPolicy, read_settings
from headway.tune.robust import Rules
from headway.tune.table import COLUMNS, FlowRow, Table
from test_tune_robust import GOOD

FEATURES = [
    {"name": "rtt_ms", "log": True, "scale": 0.2, "clip": [0.0, 4.0]},
    {"name": "loss", "offset": 0.5, "scale": 2.0, "clip": [-1.0, 1.0]},
    {"name": "throughput_mbps"},
]
CHOICES = [[1.0, 2.0], [2.0, 4.0], [10.0, 10.0]]


def row(**values):
    return dict.fromkeys(COLUMNS, 0.0) | values


def test_samples_of_an_interval_become_a_row_of_features():
    flow, rules = FlowRow(cutoff_hz=1e6, window_s=1.0), Rules()
    for index in range(51):
        sample = replace(
            GOOD,
            time_s=100 + index * 0.02,
            rtt_ms=20.0 + index * 0.1,
            acked_bytes=GOOD.acked_bytes + index * 14480,
            delivered_packets=700 + index * 10,
            lost_packets=3 + index // 10,
        )
        assert flow.add(sample, rules)
    assert not flow.add(replace(GOOD, time_s=101.5, cwnd_packets=0), rules)
    found = flow.row()
    assert set(found) == set(COLUMNS)
    wanted = {
        "interval_ms": 1000.0,
        "rtt_ms": 22.5,
        "rtt_min_ms": 20.0,
        "rtt_slope": 0.005,  # 5 ms a second
        "throughput_mbps": 50 * 10 * 1500 * 8e-6,
        "delivered_packets": 500.0,
        "lost_packets": 5.0,
        "loss": 5 / 505,
        "btlbw_mbps": 10.0,
        "rtprop_ratio": 2.0,
    }
    assert {name: found[name] for name in wanted} == pytest.approx(wanted)
    assert flow.row() is None, "nothing has come since"
    assert rules.rejected == {"window": 1}


def test_each_number_is_normalised_as_the_card_says():
    table = Table(FEATURES)
    values = [row(rtt_ms=50.0, loss=0.1, throughput_mbps=9.0), row(rtt_ms=1e12, loss=None, throughput_mbps=-3e6)]
    expected = [[math.log1p(50) * 0.2, -0.8, 9.0], [4.0, -1.0, -1e6]]
    assert table.normalised(values) == pytest.approx(np.array(expected, np.float32))
    assert table.normalised(values).dtype == np.float32
    assert table.unknown == 2 * 1, "once for each call"


def test_too_few_flows_leave_zeros_and_too_many_are_sampled():
    table = Table([{"name": "rtt_ms"}], rows=4)
    assert table.fill([[row(rtt_ms=7.0)]]).tolist() == [[7, 0, 0, 0]]
    assert table.fill([[row(rtt_ms=1.0)], [row(rtt_ms=2.0)]], [[row(rtt_ms=9.0)]]).tolist() == [
        [1, 2, 9, 0],
        [2, 1, 9, 0],
    ], "its own flow first, then the agent's others, then neighbours'"
    assert table.sampled == 0
    flows = [[row(rtt_ms=float(n))] for n in range(1, 31)]
    filled = table.fill(flows, [[row(rtt_ms=99.0)]])
    assert table.sampled == 30
    assert filled[:, 0].tolist() == list(range(1, 31))
    for line in filled:
        assert len(set(line)) == 4, "without replacement"
        assert 99 not in line, "neighbours fill room that is left"


def test_the_seed_determines_the_sample():
    flows = [[row(rtt_ms=float(n))] for n in range(1, 31)]
    one, same, other = (Table([{"name": "rtt_ms"}], rows=5, seed=seed).fill(flows) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


@given(st.integers(1, 6), st.integers(1, 3), st.integers(0, 9), st.integers(0, 9))
def test_a_table_always_has_the_same_shape_and_only_existing_flows(rows, history, own, others):
    table = Table([{"name": "rtt_ms"}, {"name": "loss"}], rows=rows, history=history)
    of = lambda first, count: [[row(rtt_ms=float(first + n), loss=0.5)] * (1 + n % 2) for n in range(count)]  # noqa: E731
    filled = table.fill(of(1, own), of(100, others))
    assert filled.shape == (own, len(table)) == (own, rows * history * 2)
    for index, line in enumerate(filled.reshape(own, rows, history, 2)):
        newest = line[:, -1, 0]
        assert newest[0] == index + 1
        assert np.count_nonzero(newest) == min(rows, own + others)


def test_history_is_oldest_first_with_zeros_before_it():
    table = Table([{"name": "rtt_ms"}], rows=2, history=3)
    kept = [row(rtt_ms=float(n)) for n in (1, 2, 3, 4)]
    assert table.fill([kept, kept[:1]]).tolist() == [[2, 3, 4, 0, 0, 1], [0, 0, 1, 2, 3, 4]]


def test_a_feature_that_no_monitor_measures_is_refused():
    with pytest.raises(UsageError, match=r"pna.*rtt_ms"):
        Table([{"name": "pna"}])


def write_tuner(folder, rows=1, hidden=8):
    """A small tuner's model with random weights."""
    names = ("rtt_ms", "throughput_mbps", "cwnd_packets", "loss")
    observation = {"history": 1, "features": [{"name": name, "log": True, "scale": 0.3} for name in names]}
    if rows > 1:
        observation["rows"] = rows
    agent = {
        "clock": {"kind": "period", "ms": 1000.0},
        "base": {"kind": "scheme", "name": "bbr"},
        "observation": observation,
        "action": {"kind": "settings", "parameters": ["rtprop_window", "btlbw_window"], "choices": CHOICES},
    }
    random, inputs = np.random.default_rng(1), rows * len(names)
    sizes = [inputs, hidden, len(CHOICES)]
    tensors = {}
    for n in range(2):
        tensors[f"layers.{n}.weight"] = random.normal(size=(sizes[n + 1], sizes[n])).astype(np.float32)
        tensors[f"layers.{n}.bias"] = random.normal(size=sizes[n + 1]).astype(np.float32)
    seen = random.random((8, inputs), dtype=np.float32)
    middle = np.tanh(seen @ tensors["layers.0.weight"].T + tensors["layers.0.bias"])
    outputs = middle @ tensors["layers.1.weight"].T + tensors["layers.1.bias"]
    net = {"kind": "mlp", "layers": sizes, "activations": ["tanh", "identity"]}
    card = {"name": "tuner", "version": 1, "description": "a tuner", "net": net, "agent": agent}
    training = models.load("owl-v1").card["training"]
    models.write(folder, card | {"training": training, "evaluation": {}}, tensors, (seen, outputs))
    return folder


@pytest.fixture
def tuner(tmp_path):
    return write_tuner(tmp_path / "tuner-v1")


def test_a_model_decides_as_its_golden_outputs_say(tuner):
    policy = ModelPolicy.load(tuner)
    golden = models.load(tuner).golden()
    assert policy.outputs(golden["observations"]) == pytest.approx(golden["outputs"], abs=1e-5)
    assert policy.parameters == ("rtprop_window", "btlbw_window")
    flows = [[row(rtt_ms=20.0 * n, throughput_mbps=n, cwnd_packets=10.0, loss=0.01 * n)] for n in range(1, 40)]
    found = policy.decide(flows)
    best = policy.outputs(policy.table.fill(flows)).argmax(axis=1)
    assert found == [dict(zip(policy.parameters, CHOICES[index], strict=True)) for index in best]
    assert policy.decide([]) == []


def test_a_model_with_rows_sees_the_other_flows(tmp_path):
    spec = {"history": 1, "rows": 3, "features": [{"name": "rtt_ms"}]}
    agent = {**models.load("owl-v1").card["agent"], "observation": spec}
    check_agent(json.dumps(agent))
    policy = ModelPolicy.load(write_tuner(tmp_path / "tuner-v1", rows=3))
    assert policy.rows == 3
    alone = [row(rtt_ms=20.0, throughput_mbps=5.0)]
    seen = policy.table.fill([alone], [[row(rtt_ms=200.0)]])
    assert np.count_nonzero(seen) == 3


def test_a_model_gets_no_rows_that_it_was_not_trained_on():
    # The model was trained with a separate agent for each flow. So below its own row the table was
    # always empty.
    policy = ModelPolicy.load("bbr-tuner-ppo-v1")
    assert policy.rows == 1
    flows = [[dict.fromkeys(COLUMNS, 10.0 + n)] for n in range(3)]
    seen = policy.table.fill(flows, [[dict.fromkeys(COLUMNS, 50.0)]]).reshape(3, 5, -1)
    assert np.count_nonzero(seen[:, 0]) > 0
    assert not np.count_nonzero(seen[:, 1:])
    assert policy.decide(flows) == [policy.decide([flow])[0] for flow in flows]


def test_a_model_other_than_a_tuner_is_refused():
    with pytest.raises(UsageError, match="must be 'settings'"):
        ModelPolicy.load("owl-v1")


def test_settings_have_the_usual_format():
    assert read_settings("rtprop_window=200ms,btlbw_window=4", "--fixed") == {
        "rtprop_window": 0.2,
        "btlbw_window": 4,
    }
    assert Fixed({"btlbw_window": 4.0}).decide([[], []]) == [{"btlbw_window": 4.0}] * 2
    for wrong, hint in (
        ("rtprop_windw=2s", "nearest is rtprop_window"),
        ("rtprop_window=2", "2s"),
        ("rtprop_window=1ms", "0.1 to 600 s"),
        ("btlbw_window=2.5", "a whole number from 1 to 1000"),
    ):
        with pytest.raises(UsageError, match=hint):
            read_settings(wrong, "--fixed")
