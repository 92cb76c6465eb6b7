//! Separates signal from noise in a trial's RTTs (Proteus, SIGCOMM 2020 §5), with three filters,
//! from single acknowledgements to the history of trials.

use std::collections::VecDeque;

use super::Summary;
use crate::{Duration, Time};

/// The first filter (§5): it finds acknowledgements that the way back has bunched. Their RTTs do
/// not show the queue.
#[derive(Debug, Default)]
pub(super) struct Bursts {
    latest: Option<Time>,
    interval: Duration,
    /// The usual ratio of two successive intervals.
    ratio: Option<f64>,
    /// When the current burst began, if there is one.
    burst: Option<Time>,
}

impl Bursts {
    /// A burst begins when two intervals differ by this many times the usual difference
    /// (PCC-Uspace).
    const FACTOR: f64 = 50.0;
    const GAIN: f64 = 0.1;

    /// Is the RTT of an acknowledgement at `now` reliable? After a burst it is once one is below
    /// the smoothed RTT, or after a round trip, when what was held up has arrived. Without the
    /// second rule, RTTs without jitter would never be reliable again.
    pub(super) fn is_reliable(&mut self, now: Time, rtt: Duration, smoothed: Duration) -> bool {
        let Some(latest) = self.latest.replace(now) else {
            return true;
        };
        let interval = now.since(latest);
        let before = std::mem::replace(&mut self.interval, interval);
        // Acknowledgements that arrive together have no interval.
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

/// A moving average, and the mean distance from it.
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

/// The second and third filter: do a trial's RTT gradient and the standard deviation of its RTTs
/// exceed the noise?
#[derive(Debug, Default)]
pub(super) struct Trends {
    /// The mean RTTs of the last trials, in seconds.
    means: VecDeque<f64>,
    gradient: Option<Usual>,
    last_gradient: f64,
    deviation: Option<Usual>,
    fluctuating: f64,
}

/// The part of a trial's RTTs that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Signal {
    /// d(RTT)/dT, or zero.
    pub(super) rtt_gradient: f64,
    /// sigma(RTT) in seconds, or zero.
    pub(super) rtt_deviation_s: f64,
}

impl Trends {
    /// The number of trials in the history (§5; `kRttHistoryLen`).
    const TRIALS: usize = 6;
    /// A trend is this many standard deviations above the usual one (G1).
    const TREND: f64 = 2.0;
    /// Competition is a fluctuation this many standard deviations above the usual one (G2).
    const FLUCTUATION: f64 = 4.0;
    /// The smallest standard deviation that is not noise (PCC-Uspace: 1 ms).
    const MIN_DEVIATION_S: f64 = 1e-3;
    /// The share of fluctuating trials above which fluctuation has become usual (PCC-Uspace).
    const RESET: f64 = 0.95;

    /// The signal of `trial`, without noise. A trial without RTTs is not in the history.
    pub(super) fn signal(&mut self, trial: &Summary) -> Signal {
        let Some(mean) = trial.rtt_mean_s else {
            return Signal::default();
        };
        // Is the line through the RTTs steeper than their residual?
        let clear = trial.rtt_gradient.abs() > trial.gradient_error;
        let (rises, moves) = self.trend(mean);
        let fluctuates = self.fluctuates(trial.rtt_deviation_s);
        Signal {
            // A falling RTT must not be rewarded, because the flow would then send less (§4.2).
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

    /// Whether the RTT over the last trials rises, and whether it moves in either direction, more
    /// than usual.
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
        if deviation <= high || deviation <= Self::MIN_DEVIATION_S {
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

/// The slope of a line through `values` at 0, 1, 2 and so on.
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
            assert!(bursts.is_reliable(now, smoothed, smoothed));
        }
        // After 100 ms of silence everything that was held up arrives at once.
        now += MS * 100;
        assert!(!bursts.is_reliable(now, MS * 140, smoothed));
        for i in 0..5 {
            assert!(!bursts.is_reliable(now, MS * (139 - i), smoothed));
        }
        now += MS;
        assert!(!bursts.is_reliable(now, MS * 41, smoothed));
        now += MS;
        assert!(bursts.is_reliable(now, MS * 39, smoothed));
    }

    /// On a link without noise every RTT equals the smoothed one, to the nanosecond.
    #[test]
    fn a_burst_is_over_after_a_round_trip() {
        let mut bursts = Bursts::default();
        let smoothed = MS * 40;
        let arrivals = (0..20).chain([120]).chain(121..170);
        let trusted: Vec<bool> = arrivals
            .map(|ms| bursts.is_reliable(Time::ZERO + MS * ms, smoothed, smoothed))
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

    /// RTTs of 40 ms that rise by `rise` seconds a trial. The error of each trial's own gradient is
    /// larger than the gradient.
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

    /// A trial whose packets were all lost shows no RTTs, and does not change the next trials'.
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

    /// A standard deviation counts if it exceeds the mean by four mean distances, and a
    /// millisecond, until that is usual.
    #[test]
    fn an_unusual_departure_of_the_rtt_counts() {
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
