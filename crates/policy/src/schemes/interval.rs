//! The interval study's agent, which is Aurora's with any multiple of any estimate of the RTT as
//! its interval; and its successor, which chooses the multiple itself.

use headway_cc::{CongestionControl, Family, Kind, Need, Param, Scheme, Setup, Values};

use super::{GUARD, LATENCY, deployed, model_of, trained};
use crate::model::Model;
use crate::{ClockSpec, RttEstimator};

const MODEL: Param = trained("v1", "v1", |text| model_of("interval", text));
const LEARNED_MODEL: Param = trained("v1", "v1", |text| model_of("interval-learned", text));
/// The first estimator is the one that the study recommends.
const RTT: Param = Param {
    name: "rtt",
    help: "the estimate of the RTT: Jacobson and Karels (jk), Eq. 3 as printed (jk-printed), an EWMA of gain 1/8 (ewma), the minimum of 10 s, or the newest sample",
    kind: Kind::Choice(&["jk", "ewma", "min-filtered", "latest", "jk-printed"]),
};
const N: Param = Param {
    name: "n",
    help: "length of an interval as a multiple of that estimate (Eq. 4)",
    kind: Kind::Number {
        default: 2.0,
        min: 0.1,
        max: 10.0,
    },
};

/// The interval study, by Naqvi, Hilman and Anggorojati.
pub const INTERVAL: Scheme = Scheme {
    name: "interval",
    family: Family::Learned,
    summary: "a small network scales the rate at intervals of n times an estimate of the RTT; you choose n and the estimate",
    source: "Naqvi, Hilman and Anggorojati, Fine Tuning of Interval Configuration for Deep RL Based Congestion Control; trained here (docs/training.md)",
    deviations: &[
        "the paper states no training interval: we use Aurora's, 1.5 x the newest sample, which is not one of its 18 groups",
        "it states no training networks: ours have 1 to 12 Mbit/s, base RTTs of 20 to 420 ms and queues of 6 to 100 packets, or replay recorded LTE. None is one of the seven networks",
        "it states no scale of the rate's change: an output of 1 multiplies the rate by 1.2",
        "in training, Eq. 1 is divided by the path's mean rate, so that slow networks count as much as fast ones; 0.8 times the reward of that rate is subtracted; and the result is divided by the standard deviation of its sums. This does not change the ranking on any one network",
        "from each feature its value without any change is subtracted; the result is multiplied by 2 to 5 and clipped. A lambda of 0.95, a PPO clip of 0.2 and an initial standard deviation of 0.4 are our choices",
        "the value function's output has no tanh, because it estimates sums of rewards",
    ],
    needs: &[Need::RateSample, Need::Pacing],
    params: &[RTT, N, MODEL, LATENCY, GUARD],
    build: |setup, values| build(setup, values),
    receiver: None,
    router: None,
};

/// The future work that the study names: the policy chooses its interval.
pub const INTERVAL_LEARNED: Scheme = Scheme {
    name: "interval-learned",
    summary: "as `interval`, with a second output that sets the length of the next interval in RTTs",
    source: "the future work of Naqvi, Hilman and Anggorojati (section 5); trained here (docs/training.md)",
    deviations: &[
        "the second output sets the interval's length, from 0.25 to 4 times the RTT's EWMA of gain 1/8, on a logarithmic scale",
        "training begins with the weights of `interval`. It discounts rewards by time, not by decision, and weights each reward by the length of its interval; otherwise short intervals would earn more because there are more of them",
        "it was trained on more cellular links, up to 24 Mbit/s and 2% random loss, and in longer episodes. Scale, Eq. 1 and value function are those of `interval`",
    ],
    params: &[LEARNED_MODEL, LATENCY, GUARD],
    build: |setup, values| super::build(setup, values, &LEARNED_MODEL),
    ..INTERVAL
};

/// The requested interval.
fn clock(values: &Values) -> ClockSpec {
    ClockSpec::Rtt {
        n: values.number(&N),
        estimator: match values.choice(&RTT) {
            "ewma" => RttEstimator::Ewma,
            "min-filtered" => RttEstimator::MinFiltered,
            "latest" => RttEstimator::Latest,
            "jk-printed" => RttEstimator::JacobsonKarelsPrinted,
            _ => RttEstimator::JacobsonKarels,
        },
    }
}

/// The model with the requested interval as its clock; `None` for another scheme, whose model has
/// its own clock.
pub(super) fn with_clock(scheme: &Scheme, values: &Values, model: &Model) -> Option<Model> {
    const CHECKED: &str =
        "a parameter is within what a clock can keep, and the model's intervals are its clock's";
    (scheme.name == INTERVAL.name).then(|| model.with_clock(clock(values)).expect(CHECKED))
}

fn build(setup: &Setup, values: &Values) -> Box<dyn CongestionControl> {
    let model = values.loaded::<Model>(&MODEL);
    let model = with_clock(&INTERVAL, values, &model);
    deployed(setup, values, &model.expect("it is this scheme's"))
}
