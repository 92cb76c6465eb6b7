//! PCC Vivace (Dong et al., NSDI 2018): gradient ascent on x^t - b x d(RTT)/dT - c x L.

use super::ascent::{Ascent, Climb, TrialUtility};
use super::{NEEDS, Pace, Pcc, Summary, deviations};
use crate::{Family, Kind, Param, Probe, Scheme, Setup, Values};

const TOLERANCE: Param = Param {
    name: "tolerance",
    help: "RTT gradients up to this count as noise",
    kind: Kind::Number {
        default: 0.01,
        min: 0.0,
        max: 1.0,
    },
};

/// Registry entry with the latency term.
pub const SCHEME: Scheme = Scheme {
    name: "vivace",
    family: Family::Utility,
    summary: "climbs along the gradient of rate - RTT growth - loss",
    source: "Dong et al., NSDI 2018; two pairs of trials, one while trending, as in its authors' code",
    deviations: deviations![
        "A trial that loses more than half of its packets halves the rate at once, as in the authors' code. The paper's bounded steps take seconds to leave a full buffer.",
        "A falling RTT has no reward, as in the authors' code and in Proteus. By the paper's formula it has, and on 12 Mbit/s the rate falls to 60% and recovers after every queue.",
        "In Starting, RTT gradients up to 0.2 count as noise, as in the authors' code. Otherwise an LTE link seems full at a quarter of its rate, because the first trials have few packets.",
    ],
    needs: NEEDS,
    params: &[TOLERANCE],
    build: |setup, values| build(setup, values, LATENCY),
    receiver: None,
    router: None,
};

/// Registry entry without the latency term (b = 0), the default of the authors' program.
pub const LOSS: Scheme = Scheme {
    name: "vivace-loss",
    family: Family::Utility,
    summary: "climbs along the gradient of rate - loss",
    source: "Dong et al., NSDI 2018, with b = 0; two pairs of trials, one while trending, as in its authors' code",
    deviations: deviations![
        "The loss coefficient is the paper's at any loss. The authors' code uses 1 instead of 11.35 where at most 3% of the packets are lost.",
    ],
    needs: NEEDS,
    params: &[TOLERANCE],
    build: |setup, values| build(setup, values, 0.0),
    receiver: None,
    router: None,
};

/// A trial that loses more than this share halves the rate (PCC-Uspace, branch NSDI-2018:
/// "emergency stop"). Without the latency term there is no such stop: full buffers are usual then,
/// and one of two flows would stop again and again.
const STOP: f64 = 0.5;
/// The largest gradient that counts as noise in Starting, where trials have few packets
/// (PCC-Uspace, branch NSDI-2018).
const STARTING_TOLERANCE: f64 = 0.2;
/// t, b and c (§2.2).
pub(super) const EXPONENT: f64 = 0.9;
pub(super) const LATENCY: f64 = 900.0;
pub(super) const LOSS_COEFFICIENT: f64 = 11.35;

/// §2.2: u(x, d(RTT)/dT, L), with x in Mbit/s. A queue that drains adds nothing (PCC-Uspace,
/// `pcc_vivace_ucalc.cpp`; Proteus' paper).
pub(super) fn utility(x: f64, rtt_gradient: f64, loss: f64, latency: f64) -> f64 {
    libm::pow(x, EXPONENT) - latency * x * rtt_gradient.max(0.0) - LOSS_COEFFICIENT * x * loss
}

fn build(setup: &Setup, values: &Values, latency: f64) -> Box<dyn crate::CongestionControl> {
    let vivace = Climb {
        ascent: Ascent::new(setup, 2),
        worth: Vivace {
            latency,
            tolerance: values.number(&TOLERANCE),
            rtt_gradient: 0.0,
        },
    };
    // A trial lasts a round trip, and at least 10 packets (PCC-Uspace, branch NSDI-2018,
    // `start_monitor`).
    let pace = Pace {
        rtts: (1.0, 1.0),
        packets: 10,
    };
    Box::new(Pcc::new(setup, vivace, pace))
}

/// Vivace's utility of a trial.
#[derive(Debug)]
struct Vivace {
    /// b: the weight of the latency term.
    latency: f64,
    tolerance: f64,
    rtt_gradient: f64,
}

impl TrialUtility for Vivace {
    /// §4.3: gradients close to zero are noise.
    fn utility(&mut self, trial: &Summary, starting: bool) -> Option<f64> {
        self.rtt_gradient = trial.rtt_gradient;
        if self.latency > 0.0 && trial.loss > STOP && !starting {
            return None;
        }
        let tolerance = if starting {
            self.tolerance.max(STARTING_TOLERANCE)
        } else {
            self.tolerance
        };
        let gradient = if trial.rtt_gradient <= tolerance {
            0.0
        } else {
            trial.rtt_gradient
        };
        Some(utility(trial.rate_mbps, gradient, trial.loss, self.latency))
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.value("rtt_gradient", self.rtt_gradient);
    }
}

#[cfg(test)]
mod tests {
    use super::super::RateControl;
    use super::*;
    use crate::testing::setup;

    fn vivace(latency: f64) -> Climb<Vivace> {
        let mut vivace = Climb {
            ascent: Ascent::new(&setup(), 2),
            worth: Vivace {
                latency,
                tolerance: 0.01,
                rtt_gradient: 0.0,
            },
        };
        vivace.start(10.0);
        vivace
    }

    /// A trial that was sent at its full rate.
    fn trial(rate: f64, rtt_gradient: f64, loss: f64) -> Summary {
        Summary {
            target_mbps: rate,
            rate_mbps: rate,
            rtt_gradient,
            loss,
            ..Summary::default()
        }
    }

    /// The first trials tolerate a gradient of 0.2. A quarter more than the link takes (0.25) is
    /// too much.
    #[test]
    fn starting_tolerates_noise() {
        let mut vivace = vivace(LATENCY);
        for (rate, gradient, rate_then) in
            [(10.0, 0.2, 10.0), (20.0, 0.15, 20.0), (40.0, 0.25, 20.0)]
        {
            assert_eq!(vivace.next_trial(), Some(rate));
            vivace.on_result(&trial(rate, gradient, 0.0));
            assert_eq!(vivace.rate(), rate_then);
        }
        assert!(!vivace.ascent.is_starting());
    }

    /// NSDI 2018 §4.3: after Starting, gradients up to 0.01 are noise, and the utility of both
    /// trials of a pair is that of their rate alone.
    #[test]
    fn small_gradients_are_noise() {
        for (gradient, up) in [(0.01, true), (0.02, false)] {
            let mut vivace = vivace(LATENCY);
            vivace.next_trial();
            vivace.on_result(&trial(10.0, 1.0, 0.0));
            assert_eq!(vivace.rate(), 5.0, "back to half");
            while let Some(rate) = vivace.next_trial() {
                let steeper = if rate > 5.0 { gradient } else { 0.0 };
                vivace.on_result(&trial(rate, steeper, 0.0));
                if vivace.rate() != 5.0 {
                    break;
                }
            }
            assert_eq!(vivace.rate() > 5.0, up, "{gradient}");
        }
    }

    /// More than half of the packets are lost: the rate is halved at once if there is a latency
    /// term.
    #[test]
    fn a_trial_that_loses_half_stops_the_climb() {
        for (latency, loss, rate) in [(LATENCY, 0.51, 2.5), (LATENCY, 0.5, 5.0), (0.0, 0.51, 5.0)] {
            let mut vivace = vivace(latency);
            vivace.next_trial();
            vivace.on_result(&trial(10.0, 1.0, 1.0));
            vivace.next_trial();
            vivace.on_result(&trial(5.25, 0.0, loss));
            assert_eq!(vivace.rate(), rate);
        }
    }
}
