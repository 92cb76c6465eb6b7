//! Estimates of the RTT for clocks whose interval is a multiple of it.

use headway_cc::{Duration, MinRtt, Time};
use serde::{Deserialize, Serialize};

/// How the RTT of an interval is estimated (the interval study, Eq. 2 and 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RttEstimator {
    /// The newest sample (Aurora).
    Latest,
    /// The mean of the last interval's samples (PCC-RL).
    Mean,
    /// An EWMA with gain 1/8 (Eq. 2).
    Ewma,
    /// The EWMA plus four times the variation, which has gain 1/4 (Jacobson and Karels; RFC 6298
    /// §2).
    JacobsonKarels,
    /// Eq. 3 exactly as printed: the variation is 3/4 of the EWMA itself plus 1/4 of the distance
    /// between it and the newest sample. The estimate is therefore four EWMAs plus that distance.
    JacobsonKarelsPrinted,
    /// The minimum of the last 10 s.
    MinFiltered,
}

/// The RTT of a flow as each estimator sees it.
#[derive(Clone, Debug, Default)]
pub(super) struct Estimate {
    latest_us: f64,
    mean: (f64, f64),
    last_mean_us: f64,
    ewma_us: f64,
    variation_us: f64,
    least: MinRtt,
}

impl Estimate {
    /// Has there been no sample yet?
    pub(super) fn is_empty(&self) -> bool {
        self.latest_us == 0.0
    }

    /// Adds a sample, which is above zero. Only what `estimator` needs is updated.
    pub(super) fn add(&mut self, now: Time, rtt_us: u32, estimator: RttEstimator) {
        let us = f64::from(rtt_us);
        if self.is_empty() {
            // RFC 6298 §2.2.
            (self.ewma_us, self.variation_us) = (us, us / 2.0);
        } else {
            // §2.3: the variation is updated first, with the old mean.
            self.variation_us += ((self.ewma_us - us).abs() - self.variation_us) / 4.0;
            self.ewma_us += (us - self.ewma_us) / 8.0;
        }
        self.latest_us = us;
        self.mean.0 += us;
        self.mean.1 += 1.0;
        if estimator == RttEstimator::MinFiltered {
            self.least.add(now, Duration::from_micros(rtt_us.into()));
        }
    }

    /// The estimate; zero before the first sample.
    pub(super) fn get(&self, estimator: RttEstimator) -> Duration {
        let us = match estimator {
            RttEstimator::Latest => self.latest_us,
            RttEstimator::Mean if self.mean.1 > 0.0 => self.mean.0 / self.mean.1,
            RttEstimator::Mean => self.last_mean_us,
            RttEstimator::Ewma => self.ewma_us,
            RttEstimator::JacobsonKarels => self.ewma_us + 4.0 * self.variation_us,
            // Eq. 2 comes before Eq. 3, so the mean already contains the newest sample.
            RttEstimator::JacobsonKarelsPrinted => {
                let distance = (self.ewma_us - self.latest_us).abs();
                self.ewma_us + 4.0 * (0.75 * self.ewma_us + 0.25 * distance)
            }
            RttEstimator::MinFiltered => self.least.get().as_secs_f64() * 1e6,
        };
        Duration::from_secs_f64(us * 1e-6)
    }

    /// The estimate at the end of an interval. The interval's mean starts again.
    pub(super) fn close(&mut self, estimator: RttEstimator) -> Duration {
        let estimate = self.get(estimator);
        self.last_mean_us = estimate.as_secs_f64() * 1e6;
        self.mean = (0.0, 0.0);
        estimate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Estimates in milliseconds, one after each sample.
    fn estimates(samples_ms: &[f64], estimator: RttEstimator) -> Vec<f64> {
        let mut estimate = Estimate::default();
        let mut now = Time::ZERO;
        let after = |ms: &f64| {
            now += Duration::from_millis(10);
            estimate.add(now, (ms * 1e3) as u32, estimator);
            estimate.get(estimator).as_millis_f64()
        };
        samples_ms.iter().map(after).collect()
    }

    #[track_caller]
    fn are(found: &[f64], right: &[f64]) {
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5;
        let same = found.len() == right.len() && found.iter().zip(right).all(near);
        assert!(same, "{found:?}, must be {right:?}");
    }

    /// RFC 6298 §2 by hand, without the clock's granularity: SRTT <- R, RTTVAR <- R/2; then RTTVAR
    /// <- 3/4 RTTVAR + 1/4 |SRTT - R'| before SRTT <- 7/8 SRTT + 1/8 R'; RTO <- SRTT + 4 RTTVAR.
    #[test]
    fn jacobson_karels_matches_rfc_6298s_timeout() {
        let samples = [80.0, 80.0, 160.0, 40.0];
        // SRTT is 80, 80, 90, 83.75; RTTVAR is 40, 30, 42.5, 44.375.
        are(
            &estimates(&samples, RttEstimator::JacobsonKarels),
            &[240.0, 200.0, 260.0, 261.25],
        );
        are(
            &estimates(&samples, RttEstimator::Ewma),
            &[80.0, 80.0, 90.0, 83.75],
        );
        // Constant samples have no variation in the end: 80 + 4 x 40 x (3/4)^n.
        let steady = estimates(&[80.0; 9], RttEstimator::JacobsonKarels);
        let right: Vec<f64> = (0..9).map(|n| 80.0 + 160.0 * 0.75_f64.powi(n)).collect();
        are(&steady, &right);
    }

    /// Eq. 3 with beta = 3/4: RTTvar = 3/4 RTTewma + 1/4 |RTTewma - RTTlatest|, RTTjk = RTTewma + 4
    /// RTTvar.
    #[test]
    fn eq_3_as_printed_is_four_mean_rtts_plus_a_difference() {
        let samples = [80.0, 80.0, 160.0, 40.0];
        // RTTvar is 60, 60, 67.5 + 17.5 = 85, 62.8125 + 10.9375 = 73.75.
        are(
            &estimates(&samples, RttEstimator::JacobsonKarelsPrinted),
            &[320.0, 320.0, 430.0, 378.75],
        );
    }

    #[test]
    fn latest_and_minimum_rtt_estimates() {
        let samples = [80.0, 60.0, 160.0];
        are(&estimates(&samples, RttEstimator::Latest), &samples);
        are(
            &estimates(&samples, RttEstimator::MinFiltered),
            &[80.0, 60.0, 60.0],
        );
    }
}
