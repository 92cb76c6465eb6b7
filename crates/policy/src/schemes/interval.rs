//! The interval study's agent: Aurora's, with any multiple of any estimate of the RTT for an interval; and its successor,
//! which chooses the multiple itself.

use headway_cc::{CongestionControl, Family, Kind, Need, Param, Scheme, Setup, Values};

use super::{GUARD, LATENCY, deployed, model_of, trained};
use crate::model::Model;
use crate::{ClockSpec, RttEstimator};

const MODEL: Param = trained("v1", "v1", |text| model_of("interval", text));
const LEARNED_MODEL: Param = trained("v1", "v1", |text| model_of("interval-learned", text));
/// The first is what the study recommends.
const RTT: Param = Param {
    name: "rtt",
    help: "the estimate of the RTT: Jacobson and Karels (jk), Eq. 3 to the letter (jk-printed), a mean of gain 1/8 (ewma), the least of 10 s, or the newest sample",
    kind: Kind::Choice(&["jk", "ewma", "min-filtered", "latest", "jk-printed"]),
};
const N: Param = Param {
    name: "n",
    help: "how many times that estimate an interval lasts (Eq. 4)",
    kind: Kind::Number {
        default: 2.0,
        min: 0.1,
        max: 10.0,
    },
};

/// Naqvi, Hilman and Anggorojati.
pub const INTERVAL: Scheme = Scheme {
    name: "interval",
    family: Family::Learned,
    summary: "a small network scales the rate at intervals of n times an estimate of the RTT, both to be chosen",
    source: "Naqvi, Hilman and Anggorojati, Fine Tuning of Interval Configuration for Deep RL Based Congestion Control; trained here (docs/training.md)",
    deviations: &[
        "the paper names no training interval: here Aurora's, 1.5 x the newest sample, which is none of its 18 groups",
        "it names no training networks: here 1 to 12 Mbit/s, round trips of 20 to 420 ms, 6 to 100 packets of queue, and recorded LTE, none of the seven networks among them",
        "it names no scale of the rate's change: an output of 1 is a rate 1.2 times as high",
        "in training Eq. 1 is divided by the path's mean rate, so that slow networks count as much as fast ones, less 0.8 times what that rate would earn, and by the deviation of its sums; on one network that changes no ranking",
        "features are shown less what nothing happening makes of them, times 2 to 5, and clipped; lambda 0.95, a clip of 0.2 and a standard deviation of 0.4 at first are ours",
        "the value function's output is not bent by tanh: it stands for sums of rewards",
    ],
    needs: &[Need::RateSample, Need::Pacing],
    params: &[RTT, N, MODEL, LATENCY, GUARD],
    build: |setup, values| build(setup, values),
    receiver: None,
    router: None,
};

/// The future work that the study names.
pub const INTERVAL_LEARNED: Scheme = Scheme {
    name: "interval-learned",
    summary: "the same with a second output, which says how many RTTs the next interval lasts",
    source: "the future work of Naqvi, Hilman and Anggorojati (section 5); trained here (docs/training.md)",
    deviations: &[
        "the second output says how many times the RTT's mean of gain 1/8 an interval lasts, from a quarter to four times by its logarithm",
        "it begins with interval's weights, and in training what comes later is discounted by time, not by decisions, and a reward counts for as long as it lasted: short intervals would else earn by their number",
        "it is trained on more cellular links, up to 24 Mbit/s and 2% of losses, and in longer episodes; scale, Eq. 1 and value function as for `interval`",
    ],
    params: &[LEARNED_MODEL, LATENCY, GUARD],
    build: |setup, values| super::build(setup, values, &LEARNED_MODEL),
    ..INTERVAL
};

/// The interval that was asked for.
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

/// The model, deciding at the interval that was asked for; `None` of another scheme, whose model has its own.
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
