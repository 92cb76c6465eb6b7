//! Owl: a Q-network that adds packets to Cubic's window. It sees the sender's measurements and the
//! counters of the known switches.

use headway_cc::{CongestionControl, Duration, Family, Kind, Need, Param, Scheme, Setup, Values};

use super::{GUARD, model_of, trained};
use crate::model::Model;
use crate::{Learned, Limits, Policy};

const MODEL: Param = trained("v1", "v1", |text| model_of("owl", text));
const LOSS_MODEL: Param = trained("v1", "v1", |text| model_of("owl-loss", text));
/// The median time from an observation until the kernel sees the answer of an agent in user space:
/// 10 us up, 5 us for the network, 11 us down (decision 30).
pub(super) const LATENCY: Param = Param {
    name: "latency",
    help: "delay from an observation to the effect of its action; the default is that of an agent in user space",
    kind: Kind::Time {
        default: Duration::from_micros(26),
        min: Duration::ZERO,
        max: Duration::from_secs(10),
    },
};
const ONLINE: Param = Param {
    name: "online",
    help: "whether each flow continues to learn by itself in use (Algorithm 1, lines 11 and 12)",
    kind: Kind::Choice(&["false", "true"]),
};
const EPSILON: Param = weight(
    "epsilon",
    "with online=true, share of random actions",
    0.01,
    1.0,
);
const DELTA: Param = weight(
    "delta",
    "with online=true, weight of the loss in the utility from which it learns (Eq. 7)",
    0.5,
    100.0,
);
const BETA: Param = weight(
    "beta",
    "with online=true, weight of the delay in the utility from which it learns (Eq. 7)",
    0.5,
    100.0,
);
const NO_BETA: Param = weight("beta", BETA.help, 0.0, 100.0);

const fn weight(name: &'static str, help: &'static str, default: f64, max: f64) -> Param {
    Param {
        name,
        help,
        kind: Kind::Number {
            default,
            min: 0.0,
            max,
        },
    }
}

/// Owl, by Sacco et al. 2023.
pub const OWL: Scheme = Scheme {
    name: "owl",
    family: Family::Learned,
    summary: "a Q-network adds packets to Cubic's window; it observes the sender's measurements and the counters of known switches",
    source: "Sacco, Flocco, Esposito and Marchetto, IEEE TNSM 2023; trained here (docs/training.md)",
    deviations: &[
        "gamma is 0.995, because 0.93 looks only 57 ms ahead at decisions of 4 ms, less than a round trip. We use returns of forty steps, double Q-learning, layers of 128 and 64 and a learning rate of 0.0005. `headway train owl-paper` has Table II as printed",
        "in training, some simulations follow a rule for the window, and the network imitates it, less and less (`[dqn.guide]`, decision 31), because random actions every 4 ms never reach a good window",
        "besides the twelve features of Table I it observes the queueing delay, the minimum RTT of the last 10 s, the RTT divided by that minimum, the age of the minimum, the recent throughput and its peak, the window minus (peak throughput x minimum RTT), and the recent losses. The twelve features contain these only jointly, or over more than five intervals",
        "in training, the rate in Eq. 7 is divided by the square root of the slowest link's rate, so that slow networks count nearly as much as fast ones. While it learns in use, the flow's highest throughput replaces that link's rate",
        "in congestion avoidance Cubic's own growth is off, so that action 0 does nothing (section IV-A)",
        "without known switches, before their first counters, and after 10 s without counters (the controller is lost), the network's inputs say that no switch is known",
    ],
    needs: &[Need::RateSample],
    params: &[MODEL, LATENCY, ONLINE, EPSILON, DELTA, BETA, GUARD],
    build: |setup, values| build(setup, values, &MODEL, &BETA),
    receiver: None,
    router: None,
};

/// Owl without the delay in its utility.
pub const OWL_LOSS: Scheme = Scheme {
    name: "owl-loss",
    summary: "Owl with a utility of throughput and loss, without delay (beta = 0)",
    deviations: &[
        "all of `owl`'s",
        "in training with other flows, its reward did not grow above its fair share, and the rule kept to that share, because Eq. 7 with delta 0.5 and no delay rewards a flow that takes the link from others (decision 31). In use the share is unknown",
    ],
    params: &[LOSS_MODEL, LATENCY, ONLINE, EPSILON, DELTA, NO_BETA, GUARD],
    build: |setup, values| build(setup, values, &LOSS_MODEL, &NO_BETA),
    ..OWL
};

fn build(
    setup: &Setup,
    values: &Values,
    model: &Param,
    beta: &Param,
) -> Box<dyn CongestionControl> {
    const CHECKED: &str = "a test builds each of these models, frozen and learning";
    let model = values.loaded::<Model>(model);
    let latency = values.time(&LATENCY);
    if values.choice(&ONLINE) == "false" {
        let frozen = model.controller(setup, model.policy(), latency);
        return guarded(frozen.expect(CHECKED), values);
    }
    let weights = [values.number(&DELTA), values.number(beta)];
    let policy = model.learning_policy(setup, weights, values.number(&EPSILON));
    let learning = model.controller(setup, policy.expect(CHECKED), latency);
    guarded(learning.expect(CHECKED), values)
}

pub(super) fn guarded(
    learned: Learned<impl Policy>,
    values: &Values,
) -> Box<dyn CongestionControl> {
    match values.is_on(&GUARD) {
        true => Box::new(learned.guarded(Limits::default())),
        false => Box::new(learned),
    }
}
