"""Each reward, compared with a number worked out by hand from its source."""

import math

import pytest

from headway._native import UsageError
from headway.envs import REWARDS, Measurements, Reward

STEP = Measurements.of(
    throughput_packets_per_s=250.0,
    throughput_mbps=3.0,
    rtt_ms=200.0,
    min_rtt_ms=100.0,
    base_rtt_ms=100.0,
    srtt_ms=250.0,
    rtt_ratio_10s=2.0,
    loss=0.1,
    delivered_packets=90.0,
    lost_packets=10.0,
    dt_s=0.36,
    mss_bytes=1500.0,
    capacity_mbps=4.0,
    path_mbps=5.0,
    fair_mbps=2.5,
    path_rtt_ms=110.0,
    rtprop_ms=100.0,
    rtt_slope=-0.2,
    max_delivery_rate_mbps=6.0,
)

WORKED = {
    # (10 x 250 - 1000 x 0.2 - 2000 x 0.1) / 1000
    "aurora": 2.1,
    "interval": 2100.0,
    # 3 - 0.5 x 3 / 0.9 - 0.5 ln 2
    "owl": 3 - 1.5 / 0.9 - 0.5 * math.log(2),
    "power": 15.0,
    # Lost: 10 x 1500 bytes in 0.36 s, 1/3 Mbit/s. (3 - 5/3) / 6, times 125/250
    "orca": (3 - 5 / 3) / 6 * 0.5,
    # 0.375 MB/s, 100 ms of queue
    "mvfst-rl": math.log(0.37501) - 0.2 * math.log(100.00001),
    # 0.75 - 0.5 x 1 - 2 x 0.1
    "relative": 0.05,
    # 3 where 2 are due, of 4 to two flows, count as 1; 10 ms off in units of 5
    "bbr-tuner": 0.5 + 0.5 / (1 + math.exp(2)),
}


@pytest.mark.parametrize("name", REWARDS)
def test_a_worked_step(name):
    assert Reward(name).function()(STEP) == pytest.approx([WORKED[name]], rel=1e-12)


@pytest.mark.parametrize(
    ("mbps", "loss", "rtt_ratio", "beta", "utility"),
    [
        (12, 0, 1, 0.5, 6),
        (12, 133 / 1333, 2, 0.5, 12 - 6 * 1333 / 1200 - 0.5 * math.log(2)),
        (12, 0, 2, 0, 6),
        (0, 0, 4, 0.5, -math.log(2)),
        (0, 1, 1, 0.5, 0),
        (6, 0.5, 1, 0.5, 0),
        (3, 0.75, 1, 0.5, 3 - 0.5 * 3 * 4),
    ],
)
def test_owls_reward_in_training_equals_the_one_in_use(mbps, loss, rtt_ratio, beta, utility):
    # crates/policy/tests/dqn.rs has the same numbers, worked by hand, for the reward in Rust.
    step = Measurements.of(throughput_mbps=mbps, loss=loss, rtt_ratio_10s=rtt_ratio)
    assert Reward("owl", {"beta": beta}).function()(step) == pytest.approx([utility], abs=1e-12)


def test_orcas_reward_counts_loss_even_if_nothing_arrives():
    common = {
        "dt_s": 1.0,
        "mss_bytes": 1500.0,
        "max_delivery_rate_mbps": 6.0,
        "srtt_ms": 100.0,
        "min_rtt_ms": 100.0,
    }
    # 50 packets of 12 kbit lost in a second are 0.6 Mbit/s, five times over: half of 6 Mbit/s.
    assert Reward("orca").function()(Measurements.of(**common, lost_packets=50.0)) == pytest.approx([-0.5])


def test_parameters_replace_the_values_of_the_source():
    # 1 x 250 - 0 - 100 x 0.1
    reward = Reward("aurora", {"throughput": 1, "latency": 0, "loss": 100, "scale": 1}).function()
    assert reward(STEP) == pytest.approx([240.0])


def test_owls_training_reward_uses_scaled_rates_and_unused_capacity():
    # 3 and 4 of 5 Mbit/s, 10 for a full link: 6 and 8
    inflation = 0.5 * math.log(2)
    shared = Reward("owl", {"scale": 10.0, "exponent": 1}).function()
    assert shared(STEP) == pytest.approx([6 - 3 / 0.9 - inflation])
    regretted = Reward("owl", {"scale": 10.0, "exponent": 1, "regret": 1.0}).function()
    assert regretted(STEP) == pytest.approx([6 - 3 / 0.9 - inflation - 4])
    rooted = Reward("owl", {"scale": 2.0, "exponent": 0.5}).function()
    assert rooted(STEP) == pytest.approx([(3 - 1.5 / 0.9) * 2 / math.sqrt(5) - inflation])
    assert Reward("owl", {"regret": 1.0}).function()(STEP) == pytest.approx([WORKED["owl"] - 2])
    with pytest.raises(UsageError, match="has no link with a rate"):
        shared(Measurements.of(**UNLIMITED, path_mbps=math.inf))


def test_owls_reward_can_use_the_sending_rate():
    # Section V: 45 of 60 Mbit/s arrive where 133 come to a link of 100, U = 60 - 0.5 x 60 x 4/3.
    # And without loss.
    sent = Reward("owl", {"delta": 0.5, "beta": 0.0, "sent": 1.0}).function()
    measured = Measurements.of(throughput_mbps=[45.0, 45.0], loss=[0.25, 0.0])
    assert sent(measured) == pytest.approx([20.0, 22.5])


def test_owls_reward_grows_up_to_its_fair_share_when_trained_with_other_flows():
    # 12 Mbit/s for three flows: 3 are below the share, 4 are the share, 6 are 2 above it, at last
    # with a tenth lost. The observations of a step, such as a burst or a gap, do not matter.
    step = Measurements.of(
        throughput_mbps=[0, 9, 1, 7],
        delivery_rate_mbps=[3, 4, 6, 6],
        loss=[0, 0, 0, 0.1],
        rtt_ratio_10s=1,
        path_mbps=12,
        capacity_mbps=12,
        fair_mbps=4,
    )
    beside = Reward("owl", {"delta": 0.4, "fair": 1}).function()
    assert beside(step) == pytest.approx([3 - 1.2, 4 - 1.6, 4 - 2.4, 4 - 2.4 / 0.9])
    # 10 for a full share: 7.5, 10 and 15 at a cost of 0.4 each, less the 6 that the share itself
    # earns.
    shaped = Reward("owl", {"delta": 0.4, "fair": 1, "scale": 10, "exponent": 1, "regret": 1}).function()
    assert shaped(step) == pytest.approx([7.5 - 3 - 6, 0, 10 - 6 - 6, 10 - 6 / 0.9 - 6])
    # The limit is one and a half times the share: 6 of 12.
    lenient = Reward("owl", {"delta": 0.4, "fair": 1.5, "regret": 1}).function()
    assert lenient(step) == pytest.approx([1.8 - 3.6, 2.4 - 3.6, 0, 6 - 2.4 / 0.9 - 3.6])
    with pytest.raises(UsageError, match="has no link with a rate"):
        beside(Measurements.of(**UNLIMITED, path_mbps=math.inf, fair_mbps=math.inf))


@pytest.mark.parametrize("shape", [{}, {"scale": 5.0, "exponent": 1}, {"exponent": 0.5, "regret": 1.0}])
def test_a_single_flow_earns_the_same_as_without_a_fair_share(shape):
    alone = Measurements.of(
        throughput_mbps=[3, 9],
        delivery_rate_mbps=[4, 4],
        loss=[0.1, 0],
        rtt_ratio_10s=[2, 1],
        path_mbps=5,
        capacity_mbps=[4, 8],
        fair_mbps=5,
    )
    with_it, without = (Reward("owl", {"fair": fair, **shape}).function()(alone) for fair in (1, 0))
    assert with_it.tolist() == without.tolist()


def test_rewards_of_empty_measurements_are_finite():
    nothing = Measurements.of(dt_s=[0.0, 1.0])
    total_loss = Measurements.of(loss=1.0, lost_packets=5.0)
    for name in REWARDS:
        for measured in (nothing, total_loss):
            rewards = Reward(name).function()(measured)
            assert rewards.shape == (len(measured),)
            assert all(map(math.isfinite, rewards))


def test_a_wrong_reward_gives_a_one_line_error():
    for name, parameters, message in [
        ("speed", {}, "unknown name 'speed'; rewards are aurora"),
        ("power", {"x": 1.0}, "'power' has no parameter 'x'; it has none"),
        ("owl", {"beta": float("nan")}, "beta is nan, must be a number"),
    ]:
        with pytest.raises(UsageError, match=message):
            Reward(name, parameters)


def test_a_share_of_an_unlimited_capacity_is_refused():
    with pytest.raises(UsageError, match="whose bottleneck has a rate"):
        Reward("relative").function()(Measurements.of(**UNLIMITED))


UNLIMITED = {"throughput_mbps": 3.0, "capacity_mbps": math.inf, "base_rtt_ms": 100.0, "rtt_ms": 200.0, "loss": 0.0}


def test_the_tuners_reward_has_the_papers_general_terms_too():
    paper = WORKED["bbr-tuner"]
    of = {"proportional": 1.0 * 110 / 200, "derivative": -0.2, "integral": -10e-3 * 0.36}
    for name, term in of.items():
        assert Reward("bbr-tuner", {name: 1.0}).function()(STEP)[0] == pytest.approx(paper + term), name
    # With 40 ms the latency's term is 0.49 in seconds, and nothing in milliseconds.
    off = Measurements.of(path_mbps=5.0, fair_mbps=5.0, capacity_mbps=5.0, path_rtt_ms=40.0, rtprop_ms=80.0)
    for unit_ms, near in ((1000.0, 0.49), (1.0, 0.0)):
        reward = Reward("bbr-tuner", {"alpha": 0.0, "unit_ms": unit_ms}).function()(off)[0]
        assert reward == pytest.approx(near, abs=1e-4)
