//! PCC Proteus (Meng et al., SIGCOMM 2020): Vivace with filters for noise, as a primary (proteus-p)
//! or as a scavenger (proteus-s). The scavenger takes what other flows leave, and reads a
//! fluctuating RTT as competition.

use super::ascent::{Ascent, Climb, TrialUtility};
use super::noise::{Bursts, Trends};
use super::vivace::{self, LATENCY};
use super::{NEEDS, Pace, Pcc, Summary, deviations};
use crate::{CongestionControl, Duration, Family, Kind, Param, Probe, Scheme, Setup, Time, Values};

const DEVIATION: Param = Param {
    name: "deviation",
    help: "d: cost of a second of the RTT's standard deviation per Mbit/s",
    kind: Kind::Number {
        default: 1500.0,
        min: 0.0,
        max: 1e6,
    },
};

/// Registry entry: the primary.
pub const PRIMARY: Scheme = Scheme {
    name: "proteus-p",
    family: Family::Utility,
    summary: "Vivace with filters for noisy RTTs",
    source: "Meng et al., SIGCOMM 2020; numbers of pairs and filter gains as in PCC-Uspace",
    deviations: deviations![
        "While the rate moves in one direction, one pair of trials is compared at a time, as in Vivace. The authors' code compares each step with the one before.",
        "A burst of acknowledgements ends after one round trip at the latest. In the authors' code it ends when an RTT is below the average, which never happens without noise.",
        "In Starting, the RTT's standard deviation and a growth below 1 ms count as noise, as in the authors' code.",
    ],
    needs: NEEDS,
    params: &[],
    build: |setup, _| build(setup, 0.0, PRIMARY_PAIRS),
    receiver: None,
    router: None,
};

/// Registry entry: the scavenger.
pub const SCAVENGER: Scheme = Scheme {
    name: "proteus-s",
    family: Family::Utility,
    summary: "a scavenger: Proteus that yields where the RTT fluctuates",
    source: "Meng et al., SIGCOMM 2020; numbers of pairs and filter gains as in PCC-Uspace",
    deviations: deviations![
        "While the rate moves in one direction, one pair of trials is compared at a time, as in Vivace. The authors' code compares each step with the one before.",
        "A burst of acknowledgements ends after one round trip at the latest. In the authors' code it ends when an RTT is below the average, which never happens without noise.",
        "In Starting, the RTT's standard deviation and a growth below 1 ms count as noise, as in the authors' code.",
    ],
    needs: NEEDS,
    params: &[DEVIATION],
    build: |setup, values: &Values| build(setup, values.number(&DEVIATION), SCAVENGER_PAIRS),
    receiver: None,
    router: None,
};

const STARTING_GROWTH_S: f64 = 1e-3;
/// The primary's number of pairs, of which two decide (§5).
const PRIMARY_PAIRS: usize = 3;
/// The scavenger's number of pairs, which both have to agree (PCC-Uspace).
const SCAVENGER_PAIRS: usize = 2;

/// §4.2: u_P(x) = x^t - b x max(0, d(RTT)/dT) - c x L, and u_S(x) = u_P(x) - d x sigma(RTT).
pub(super) fn utility(x: f64, rtt_gradient: f64, loss: f64, d: f64, rtt_deviation_s: f64) -> f64 {
    vivace::utility(x, rtt_gradient, loss, LATENCY) - d * x * rtt_deviation_s
}

fn build(setup: &Setup, d: f64, pairs: usize) -> Box<dyn CongestionControl> {
    let proteus = Climb {
        ascent: Ascent::new(setup, pairs),
        worth: Proteus {
            d,
            bursts: Bursts::default(),
            trends: Trends::default(),
            rtt_gradient: 0.0,
            rtt_deviation_s: 0.0,
        },
    };
    let pace = Pace {
        rtts: (1.0, 1.0),
        packets: 5,
    };
    Box::new(Pcc::new(setup, proteus, pace))
}

/// Proteus's utility of a trial.
#[derive(Debug)]
struct Proteus {
    /// d: the weight of fluctuation; zero for a primary.
    d: f64,
    bursts: Bursts,
    trends: Trends,
    /// The signal of the last trial.
    rtt_gradient: f64,
    rtt_deviation_s: f64,
}

impl TrialUtility for Proteus {
    fn utility(&mut self, trial: &Summary, starting: bool) -> Option<f64> {
        let mut signal = self.trends.signal(trial);
        if starting {
            // As in PCC-Uspace, neither a standard deviation nor a growth of the RTT below a
            // millisecond counts as competition yet.
            signal.rtt_deviation_s = 0.0;
            if signal.rtt_gradient * trial.duration_s < STARTING_GROWTH_S {
                signal.rtt_gradient = 0.0;
            }
        }
        (self.rtt_gradient, self.rtt_deviation_s) = (signal.rtt_gradient, signal.rtt_deviation_s);
        Some(utility(
            trial.rate_mbps,
            signal.rtt_gradient,
            trial.loss,
            self.d,
            signal.rtt_deviation_s,
        ))
    }

    fn is_reliable(&mut self, now: Time, rtt: Duration, smoothed: Duration) -> bool {
        self.bursts.is_reliable(now, rtt, smoothed)
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.value("rtt_gradient", self.rtt_gradient);
        probe.value("rtt_deviation_ms", self.rtt_deviation_s * 1e3);
    }
}
