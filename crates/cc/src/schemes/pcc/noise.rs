//! What of a trial's RTTs is signal (Proteus, SIGCOMM 2020 §5): three filters, from single
//! acknowledgements to the history of trials.

use std::collections::VecDeque;

use super::Summary;
use crate::{Duration, Time};

/// Acknowledgements that the way back has bunched: their RTTs tell of it, not of the queue (§5,
/// first filter).
#[derive(Debug, Default)]
pub(super) struct Bursts {
    latest: Option<Time>,
    interval: Duration,
    /// The usual ratio of two intervals in a row.
    ratio: Option<f64>,
    /// When the burst began, while there is one.
    burst: Option<Time>,
}

impl Bursts {
    /// A burst begins where two intervals differ by this many times the usual difference
    /// (PCC-Uspace).
    const FACTOR: f64 = 50.0;
    const GAIN: f64 = 0.1;

    /// Is the RTT of an acknowledgement at `now` to be believed? After a burst they are again once
    /// one lies below the smoothed RTT, or a round trip later: what was held up has arrived then,
    /// and where nothing fluctuates none may ever lie below.
    pub(super) fn trusts(&mut self, now: Time, rtt: Duration, smoothed: Duration) -> bool {
        let Some(latest) = self.latest.replace(now) else {
            return true;
        };
        let interval = now.since(latest);
        let before = std::mem::replace(&mut self.interval, interval);
        // What arrives together says nothing of intervals.
        if interval.is_zero() || before.is_zero() {
            return self.burst.is_none();
        }
        let (a, b) = (interval.as_nanos() as f64, before.as_nanos() as f64);
        let ratio = a.max(b) / a.min(b);
        let usual = *self.ratio.get_or_insert(ratio);
        if ratio > Self::FACTOR * usual {
            self.burst = Some(now);
        } else if self
            .burst
            .is_some_and(|began| rtt < smoothed || now.since(began) > smoothed)
        {
            self.burst = None;
        }
        self.ratio = Some(usual + Self::GAIN * (ratio - usual));
        self.burst.is_none()
    }
}

/// A moving average and the mean distance from it.
#[derive(Clone, Copy, Debug)]
struct Usual {
    mean: f64,
    deviation: f64,
}

impl Usual {
    const GAIN: f64 = 0.1;

    fn add(&mut self, value: f64, distance: f64) {
        self.deviation += Self::GAIN * (distance - self.deviation);
        self.mean += Self::GAIN * (value - self.mean);
    }
}

/// The second and third filter: is a trial's RTT gradient, is its RTT's standard deviation more
/// than noise?
#[derive(Debug, Default)]
pub(super) struct Trends {
    /// Mean RTTs of the last trials, in seconds.
    means: VecDeque<f64>,
    gradient: Option<Usual>,
    last_gradient: f64,
    deviation: Option<Usual>,
    fluctuating: f64,
}

/// What counts of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Signal {
    /// d(RTT)/dT, or zero.
    pub(super) rtt_gradient: f64,
    /// sigma(RTT) in seconds, or zero.
    pub(super) rtt_deviation_s: f64,
}

impl Trends {
    /// Trials in the history (§5; `kRttHistoryLen`).
    const TRIALS: usize = 6;
    /// This number of standard deviations from the usual trend is a trend (G1).
    const TREND: f64 = 2.0;
    /// This number above the usual fluctuation is competition (G2).
    const FLUCTUATION: f64 = 4.0;
    /// A standard deviation below this is noise (PCC-Uspace: 1 ms).
    const LEAST_DEVIATION_S: f64 = 1e-3;
    /// Where nearly every trial fluctuates, that has become usual (PCC-Uspace).
    const RESET: f64 = 0.95;

    /// What is left of `trial` once noise is taken out. A trial without RTTs is no part of the
    /// history.
    pub(super) fn signal(&mut self, trial: &Summary) -> Signal {
        let Some(mean) = trial.rtt_mean_s else {
            return Signal::default();
        };
        // Is the line through the RTTs steeper than they lie apart from it?
        let clear = trial.rtt_gradient.abs() > trial.gradient_error;
        let (rises, moves) = self.trend(mean);
        let fluctuates = self.fluctuates(trial.rtt_deviation_s);
        Signal {
            // A queue that drains is nothing to go for: it would reward sending less (§4.2).
            rtt_gradient: if clear || rises {
                trial.rtt_gradient.max(0.0)
            } else {
                0.0
            },
            rtt_deviation_s: if clear || moves || fluctuates {
                trial.rtt_deviation_s
            } else {
                0.0
            },
        }
    }

    /// Over the last trials, does the RTT rise, does it move in either direction, more than it
    /// usually does?
    fn trend(&mut self, mean: f64) -> (bool, bool) {
        self.means.push_back(mean);
        if self.means.len() < Self::TRIALS {
            return (false, false);
        }
        let trend = slope(&self.means);
        self.means.pop_front();
        let last = std::mem::replace(&mut self.last_gradient, trend);
        let Some(usual) = &mut self.gradient else {
            self.gradient = Some(Usual {
                mean: 0.0,
                deviation: trend.abs(),
            });
            return (false, false);
        };
        if (trend - usual.mean).abs() <= Self::TREND * usual.deviation {
            usual.add(trend, (trend - last).abs());
            return (false, false);
        }
        self.last_gradient = last;
        (trend > 0.0, true)
    }

    fn fluctuates(&mut self, deviation: f64) -> bool {
        self.fluctuating *= 1.0 - Usual::GAIN;
        let Some(usual) = &mut self.deviation else {
            self.deviation = Some(Usual {
                mean: deviation,
                deviation: deviation / 2.0,
            });
            return false;
        };
        let high = usual.mean + Self::FLUCTUATION * usual.deviation;
        if deviation <= high || deviation <= Self::LEAST_DEVIATION_S {
            usual.add(deviation, (deviation - usual.mean).abs());
            return false;
        }
        self.fluctuating += Usual::GAIN;
        if self.fluctuating > Self::RESET {
            (self.deviation, self.fluctuating) = (None, 0.0);
        }
        true
    }
}

/// Of a line through `values` at 0, 1, 2 ..
fn slope(values: &VecDeque<f64>) -> f64 {
    let n = values.len() as f64;
    let middle = (n - 1.0) / 2.0;
    let (mut xx, mut xy) = (0.0, 0.0);
    for (i, value) in values.iter().enumerate() {
        let x = i as f64 - middle;
        xx += x * x;
        xy += x * value;
    }
    xy / xx
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn rtts_of_an_ack_burst_are_ignored_until_a_low_one() {
        let mut bursts = Bursts::default();
        let smoothed = MS * 40;
        let mut now = Time::ZERO;
        for _ in 0..20 {
            now += MS;
            assert!(bursts.trusts(now, smoothed, smoothed));
        }
        // Silence for 100 ms, then what was held up arrives at once.
        now += MS * 100;
        assert!(!bursts.trusts(now, MS * 140, smoothed));
        for i in 0..5 {
            assert!(!bursts.trusts(now, MS * (139 - i), smoothed));
        }
        now += MS;
        assert!(!bursts.trusts(now, MS * 41, smoothed));
        now += MS;
        assert!(bursts.trusts(now, MS * 39, smoothed));
    }

    /// A link without noise: every RTT is the smoothed one, to the nanosecond.
    #[test]
    fn a_burst_is_over_after_a_round_trip() {
        let mut bursts = Bursts::default();
        let smoothed = MS * 40;
        let arrivals = (0..20).chain([120]).chain(121..170);
        let trusted: Vec<bool> = arrivals
            .map(|ms| bursts.trusts(Time::ZERO + MS * ms, smoothed, smoothed))
            .collect();
        let (before, since) = trusted.split_at(20);
        let doubtful = since.iter().position(|&trusted| trusted);
        assert!(before.iter().all(|&trusted| trusted));
        assert_eq!(doubtful, Some(41), "from 120 ms to 160 ms");
    }

    #[test]
    fn the_slope_of_a_line_is_exact() {
        let line = VecDeque::from([1.0, 3.0, 5.0, 7.0, 9.0, 11.0]);
        assert!((slope(&line) - 2.0).abs() < 1e-12);
    }

    /// RTTs of 40 ms and more by `rise` seconds a trial; each trial's own gradient drowns in its
    /// error.
    fn noisy(i: u32, rise: f64) -> Summary {
        Summary {
            target_mbps: 10.0,
            rate_mbps: 10.0,
            duration_s: 0.04,
            loss: 0.0,
            rtt_gradient: 0.02,
            gradient_error: 0.03,
            rtt_mean_s: Some(0.04 + rise * f64::from(i) + 1e-4 * f64::from(i % 3)),
            rtt_deviation_s: 5e-4,
        }
    }

    #[test]
    fn a_gradient_within_its_error_is_noise_unless_trials_in_a_row_agree() {
        let mut trends = Trends::default();
        for i in 0..30 {
            let signal = trends.signal(&noisy(i, 0.0));
            assert_eq!((signal.rtt_gradient, signal.rtt_deviation_s), (0.0, 0.0));
        }
        let clear = Summary {
            gradient_error: 0.01,
            ..noisy(30, 0.0)
        };
        assert_eq!(trends.signal(&clear).rtt_gradient, 0.02);
        let found = (0..10).map(|i| trends.signal(&noisy(i, 2e-3)).rtt_gradient);
        assert_eq!(found.last(), Some(0.02), "2 ms more every trial");
    }

    /// A trial whose packets were all lost says nothing of RTTs, nor of the next trials'.
    #[test]
    fn a_trial_without_rtts_is_not_in_the_history() {
        let silent = Signal::default();
        let mut trends = Trends::default();
        for i in 0..30 {
            assert_eq!(trends.signal(&noisy(i, 0.0)), silent);
        }
        let nothing = Summary {
            loss: 1.0,
            ..Summary::default()
        };
        assert_eq!(trends.signal(&nothing), silent);
        for i in 30..36 {
            assert_eq!(trends.signal(&noisy(i, 0.0)), silent, "trial {i}");
        }
    }

    #[test]
    fn a_falling_rtt_is_not_rewarded() {
        let falling = Summary {
            rtt_gradient: -0.1,
            gradient_error: 0.0,
            ..noisy(0, 0.0)
        };
        let signal = Trends::default().signal(&falling);
        assert_eq!(signal.rtt_gradient, 0.0);
        assert_eq!(signal.rtt_deviation_s, 5e-4, "but something moves");
    }

    /// Above the mean by four mean distances, and above a millisecond, until that is usual.
    #[test]
    fn an_rtt_deviation_counts_only_if_unusual() {
        let mut trends = Trends::default();
        let mut deviates = |deviation: f64| {
            let trial = Summary {
                rtt_mean_s: Some(0.04),
                rtt_deviation_s: deviation,
                gradient_error: 1.0,
                ..Summary::default()
            };
            trends.signal(&trial).rtt_deviation_s
        };
        for i in 0..50 {
            assert_eq!(deviates(4e-4 + 1e-4 * f64::from(i % 2)), 0.0);
        }
        assert_eq!(deviates(9e-4), 0.0, "below a millisecond");
        assert_eq!(deviates(5e-3), 5e-3);
        let unusual = (0..100).filter(|_| deviates(5e-3) > 0.0).count();
        assert!((25..=40).contains(&unusual), "{unusual}");
    }
}
