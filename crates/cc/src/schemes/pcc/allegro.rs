//! PCC Allegro (Dong et al., NSDI 2015): its utility is throughput, with loss tolerated up to 5%.
//! The rate goes where four trials agree that utility is higher, faster and faster until it is not.

use super::starting::Starting;
use super::{NEEDS, Pace, Pcc, RateControl, Summary, Verdict, bounded_rate, deviations};
use crate::{Family, Kind, Param, Probe, Scheme, Setup, Stream, Values};

const ALPHA: Param = Param {
    name: "alpha",
    help: "steepness of the cut-off at 5% of loss",
    kind: Kind::Number {
        default: 100.0,
        min: 10.0,
        max: 1000.0,
    },
};
const TOLERANCE: Param = Param {
    name: "tolerance",
    help: "the share of lost packets at the cut-off",
    kind: Kind::Number {
        default: 0.05,
        min: 0.0,
        max: 0.5,
    },
};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "pcc-allegro",
    family: Family::Utility,
    summary: "tries rates 1% to 5% up and down, and moves to where throughput minus loss is higher",
    source: "Dong et al., NSDI 2015",
    deviations: deviations![],
    needs: NEEDS,
    params: &[ALPHA, TOLERANCE],
    build: |setup, values| {
        Box::new(Pcc::new(
            setup,
            Allegro::new(setup, values),
            // §3.1: a trial lasts 1.7 to 2.2 RTTs, and at least 10 packets.
            Pace {
                rtts: (1.7, 2.2),
                packets: 10,
            },
        ))
    },
    receiver: None,
    router: None,
};

/// §2.2: u = T Sigmoid_alpha(L - 0.05) - x L, with T = x (1 - L) and Sigmoid_alpha(y) = 1/(1 +
/// e^(alpha y)).
pub(super) fn utility(x: f64, loss: f64, alpha: f64, tolerance: f64) -> f64 {
    let sigmoid = 1.0 / (1.0 + libm::exp(alpha * (loss - tolerance)));
    x * (1.0 - loss) * sigmoid - x * loss
}

/// The first difference of an experiment's rates, and the step of its growth (§3.2, epsilon_min).
const EPSILON: f64 = 0.01;
/// The largest difference (epsilon_max).
const MAX_EPSILON: f64 = 0.05;
/// The number of steps in Adjusting without a result. A trial is longer than a round trip, so the
/// result of one comes before the next is over.
const UNDER_WAY: u32 = 2;
/// Two pairs of trials, with the rates r(1 + epsilon) and r(1 - epsilon) in random order.
const TRIALS: usize = 4;

#[derive(Debug)]
enum State {
    Starting(Starting),
    /// Four trials are in progress.
    Decision {
        epsilon: f64,
        /// Whether the first of each pair has the higher rate.
        higher_first: [bool; TRIALS / 2],
        begun: usize,
        utilities: [f64; TRIALS],
        known: usize,
    },
    /// One step a trial, always in the same direction, +1 or -1.
    Adjusting {
        direction: f64,
        /// The number of steps begun, and the rate of the last.
        n: f64,
        tip: f64,
        /// The utility of the last step with a result.
        utility: f64,
        under_way: u32,
    },
}

/// Allegro's rate control (§3.2).
#[derive(Debug)]
pub(super) struct Allegro {
    alpha: f64,
    tolerance: f64,
    random: Stream,
    rate: f64,
    state: State,
    utility: f64,
}

impl Allegro {
    pub(super) fn new(setup: &Setup, values: &Values) -> Allegro {
        Allegro {
            alpha: values.number(&ALPHA),
            tolerance: values.number(&TOLERANCE),
            random: setup.stream("pcc-pairs"),
            rate: 1.0,
            state: State::Starting(Starting::new(1.0)),
            utility: 0.0,
        }
    }

    fn decide(&mut self, epsilon: f64) {
        self.state = State::Decision {
            epsilon,
            higher_first: [self.random.chance(0.5), self.random.chance(0.5)],
            begun: 0,
            utilities: [0.0; TRIALS],
            known: 0,
        };
    }

    /// The results of all four trials are known.
    fn conclude(&mut self, epsilon: f64, higher_first: [bool; 2], u: [f64; TRIALS]) {
        let pair = |i: usize| match higher_first[i] {
            true => (u[2 * i], u[2 * i + 1]),
            false => (u[2 * i + 1], u[2 * i]),
        };
        let ((up_0, down_0), (up_1, down_1)) = (pair(0), pair(1));
        let (direction, utility) = if up_0 > down_0 && up_1 > down_1 {
            (1.0, (up_0 + up_1) / 2.0)
        } else if up_0 < down_0 && up_1 < down_1 {
            (-1.0, (down_0 + down_1) / 2.0)
        } else {
            // The trials did not agree: try the same rate with a larger difference.
            return self.decide((epsilon + EPSILON).min(MAX_EPSILON));
        };
        self.rate = bounded_rate(self.rate * (1.0 + epsilon * direction));
        self.state = State::Adjusting {
            direction,
            n: 0.0,
            tip: self.rate,
            utility,
            under_way: 0,
        };
    }
}

impl RateControl for Allegro {
    fn rate(&self) -> f64 {
        self.rate
    }

    fn start(&mut self, rate: f64) {
        self.rate = rate;
        self.state = State::Starting(Starting::new(rate));
    }

    fn next_trial(&mut self) -> Option<f64> {
        match &mut self.state {
            State::Starting(starting) => starting.next_trial(),
            State::Decision {
                epsilon,
                higher_first,
                begun,
                ..
            } => {
                let pair = higher_first.get(*begun / 2)?;
                let higher = *pair == (*begun % 2 == 0);
                *begun += 1;
                let sign = if higher { 1.0 } else { -1.0 };
                Some(self.rate * (1.0 + sign * *epsilon))
            }
            // r_n = r_(n-1) (1 + n epsilon_min dir)
            State::Adjusting {
                direction,
                n,
                tip,
                under_way,
                ..
            } => {
                if *under_way >= UNDER_WAY {
                    return None;
                }
                *under_way += 1;
                *n += 1.0;
                *tip = bounded_rate(*tip * (1.0 + *n * EPSILON * *direction).max(0.5));
                Some(*tip)
            }
        }
    }

    fn on_result(&mut self, summary: &Summary) -> Verdict {
        let u = utility(summary.rate_mbps, summary.loss, self.alpha, self.tolerance);
        self.utility = u;
        match &mut self.state {
            State::Starting(starting) => {
                let verdict = starting.on_result(u);
                self.rate = bounded_rate(starting.rate);
                if verdict == Verdict::Wait {
                    self.decide(EPSILON);
                }
            }
            State::Decision {
                epsilon,
                higher_first,
                utilities,
                known,
                ..
            } => {
                if let Some(slot) = utilities.get_mut(*known) {
                    *slot = u;
                }
                *known += 1;
                if *known < TRIALS {
                    return Verdict::Wait;
                }
                let (epsilon, higher_first, utilities) = (*epsilon, *higher_first, *utilities);
                self.conclude(epsilon, higher_first, utilities);
            }
            // Steps go on until the utility falls or the rate reaches a bound. Then the rate of the
            // step before is used.
            State::Adjusting {
                utility, under_way, ..
            } => {
                if u >= *utility && summary.target_mbps != self.rate {
                    (self.rate, *utility) = (summary.target_mbps, u);
                    *under_way = under_way.saturating_sub(1);
                    return Verdict::Wait;
                }
                self.decide(EPSILON);
            }
        }
        Verdict::Move
    }

    fn abandon(&mut self) {
        match &mut self.state {
            State::Starting(starting) => starting.abandon(),
            &mut State::Decision { epsilon, .. } => self.decide(epsilon),
            State::Adjusting {
                n, tip, under_way, ..
            } => {
                *n -= f64::from(*under_way);
                (*tip, *under_way) = (self.rate, 0);
            }
        }
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let state = match &self.state {
            State::Starting(_) => 0.0,
            State::Decision { .. } => 1.0,
            State::Adjusting { .. } => 2.0,
        };
        probe.value("state", state);
        probe.value("rate_mbps", self.rate);
        probe.value("utility", self.utility);
    }
}

#[cfg(test)]
mod tests {
    use super::super::MIN_RATE;
    use super::*;
    use crate::testing::setup;

    /// 20% are lost in 200 trials, and nothing after that. The minimum rate is not kept for ever.
    #[test]
    fn the_rate_rises_from_the_minimum_once_losses_end() {
        let mut allegro = Allegro {
            alpha: 100.0,
            tolerance: 0.05,
            random: setup().stream("pcc-pairs"),
            rate: 1.0,
            state: State::Starting(Starting::new(1.0)),
            utility: 0.0,
        };
        allegro.start(10.0);
        let mut trials = |count: usize, loss: f64| {
            for _ in 0..count {
                let Some(rate) = allegro.next_trial() else {
                    panic!("nothing to try: {allegro:?}");
                };
                let rate = bounded_rate(rate);
                allegro.on_result(&Summary {
                    target_mbps: rate,
                    rate_mbps: rate,
                    loss,
                    ..Summary::default()
                });
            }
            allegro.rate()
        };
        assert_eq!(trials(200, 0.2), MIN_RATE);
        assert!(trials(200, 0.0) > 10.0);
    }
}
