//! The BBR tuner's agents: a network sets the two windows of a flow's BBR every second.

use headway_cc::{Family, Need, Param, Scheme};

use super::{GUARD, LATENCY, build, model_of, trained};

const PPO_MODEL: Param = trained("v1", "v1", |text| model_of("bbr-tuner-ppo", text));
const DQN_MODEL: Param = trained("v1", "v1", |text| model_of("bbr-tuner-dqn", text));
const A2C_MODEL: Param = trained("v1", "v1", |text| model_of("bbr-tuner-a2c", text));

/// The BBR tuner of Ketabi, Chen, Dong and Ganjali, trained with PPO.
pub const PPO: Scheme = Scheme {
    name: "bbr-tuner-ppo",
    family: Family::Learned,
    summary: "BBR whose RTprop and BtlBw windows a network sets every second, trained with PPO",
    source: "Ketabi, Chen, Dong and Ganjali, A Deep Reinforcement Learning Framework for Optimizing Congestion Control in Data Centers; trained here (docs/training.md)",
    deviations: &[
        "an action is one of fifteen pairs of windows, 0.5 to 10 s and 2 to 10 rounds: the paper states no ranges",
        "an agent decides for each flow separately, with that flow's row first, and not once for all of its flows (decision 43)",
        "alpha is 0.65 and errors of RTprop count in units of 5 ms: the paper states neither, and the unit has a large effect",
        "in three quarters of the training (PPO and A2C) or in half of it (DQN) there is only one flow, which is rare in the paper's workload",
        "without `headway tune`, a flow does not see the rows of other flows",
    ],
    needs: &[Need::RateSample, Need::Pacing],
    params: &[PPO_MODEL, LATENCY, GUARD],
    build: |setup, values| build(setup, values, &PPO_MODEL),
    receiver: None,
    router: None,
};

/// The BBR tuner, trained with DQN.
pub const DQN: Scheme = Scheme {
    name: "bbr-tuner-dqn",
    summary: "BBR whose RTprop and BtlBw windows a network sets every second, trained with DQN",
    params: &[DQN_MODEL, LATENCY, GUARD],
    build: |setup, values| build(setup, values, &DQN_MODEL),
    ..PPO
};

/// The BBR tuner, trained with A2C.
pub const A2C: Scheme = Scheme {
    name: "bbr-tuner-a2c",
    summary: "BBR whose RTprop and BtlBw windows a network sets every second, trained with A2C",
    params: &[A2C_MODEL, LATENCY, GUARD],
    build: |setup, values| build(setup, values, &A2C_MODEL),
    ..PPO
};
