//! When a policy decides.

use headway_cc::{Duration, LeastRtt, Time};
use serde::{Deserialize, Serialize};

use crate::{Record, SpecError};

/// When a policy decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ClockSpec {
    /// At every acknowledgement (Rax).
    EveryAck,
    /// At the first acknowledgement after each tick of a clock that all flows share (Owl's jiffies).
    Jiffies {
        /// Ticks a second.
        hz: f64,
    },
    /// Every so many milliseconds of the flow, whether anything was heard or not (Orca, the BBR tuner).
    Period {
        /// How long.
        ms: f64,
    },
    /// Every `n` times an estimate of the RTT (Aurora, the interval study).
    Rtt {
        /// How many times.
        n: f64,
        /// Which estimate.
        estimator: RttEstimator,
    },
}

/// How an interval's RTT is estimated (the interval study, Eq. 1 to 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RttEstimator {
    /// The newest sample.
    Latest,
    /// The mean of the last interval's samples (PCC-RL).
    Mean,
    /// An exponentially weighted mean, gain 1/8.
    Ewma,
    /// That mean plus four times the variation, gain 1/4 (Jacobson and Karels).
    JacobsonKarels,
    /// The least of the last 10 s.
    MinFiltered,
}

impl ClockSpec {
    /// That it can be kept.
    ///
    /// # Errors
    /// [`SpecError`] if a number is out of range.
    pub fn check(&self) -> Result<(), SpecError> {
        let (what, value, min, max) = match *self {
            ClockSpec::EveryAck => return Ok(()),
            ClockSpec::Jiffies { hz } => ("hz", hz, 1.0, 10_000.0),
            ClockSpec::Period { ms } => ("ms", ms, 0.1, 3_600_000.0),
            ClockSpec::Rtt { n, .. } => ("n", n, 0.01, 1000.0),
        };
        match (min..=max).contains(&value) {
            true => Ok(()),
            false => Err(SpecError(format!(
                "clock: {what} is {value}, must be from {min} to {max}"
            ))),
        }
    }

    /// Does every flow decide at the same times, whatever it hears?
    pub fn is_fixed(&self) -> bool {
        matches!(self, ClockSpec::Period { .. })
    }
}

/// A flow's clock.
#[derive(Clone, Debug)]
pub struct Clock {
    spec: ClockSpec,
    due: Time,
    estimate: Estimate,
}

impl Clock {
    /// Shorter intervals than this say nothing, and cost much.
    const LEAST: Duration = Duration::from_micros(100);

    /// For a flow that begins at `start`.
    pub fn new(spec: &ClockSpec, start: Time) -> Clock {
        let due = match *spec {
            ClockSpec::EveryAck | ClockSpec::Rtt { .. } => start,
            ClockSpec::Jiffies { .. } => start,
            ClockSpec::Period { ms } => start + Duration::from_secs_f64(ms * 1e-3),
        };
        Clock {
            spec: spec.clone(),
            due,
            estimate: Estimate::default(),
        }
    }

    /// An acknowledgement tells of an RTT.
    #[inline]
    pub fn on_record(&mut self, record: &Record) {
        if record.rtt_us > 0
            && let ClockSpec::Rtt { n, estimator } = self.spec
        {
            let is_first = self.estimate.is_empty();
            self.estimate.add(record.now(), record.rtt_us, estimator);
            if is_first {
                self.due = record.now() + self.estimate.get(estimator).mul_f64(n).max(Clock::LEAST);
            }
        }
    }

    /// Is it time to decide? `has_news` says whether anything was heard since the last decision: only a fixed
    /// period ends without.
    pub fn is_due(&self, now: Time, has_news: bool) -> bool {
        now >= self.due && (has_news || self.spec.is_fixed())
    }

    /// From when on it is time to decide.
    pub fn due(&self) -> Time {
        self.due
    }

    /// When the host's timer is to call; never where only an acknowledgement can.
    pub fn next_timer(&self, has_news: bool) -> Time {
        match self.spec {
            ClockSpec::Period { .. } => self.due,
            ClockSpec::Rtt { .. } if has_news && !self.estimate.is_empty() => self.due,
            _ => Time::NEVER,
        }
    }

    /// A decision was due at `now`: when is the next?
    pub fn restart(&mut self, now: Time) {
        self.due = match self.spec {
            ClockSpec::EveryAck => now,
            ClockSpec::Jiffies { hz } => {
                let jiffy = 1e9 / hz;
                Time::from_nanos(
                    ((now.as_nanos() as f64 / jiffy).floor() * jiffy + jiffy).ceil() as u64,
                )
            }
            // A late decision does not shift those to come.
            ClockSpec::Period { ms } => {
                let period = Duration::from_secs_f64(ms * 1e-3);
                let missed = now.since(self.due).as_nanos() / period.as_nanos();
                self.due + period * (missed + 1)
            }
            ClockSpec::Rtt { n, estimator } => {
                now + self.estimate.close(estimator).mul_f64(n).max(Clock::LEAST)
            }
        };
    }
}

/// The RTT as each estimator sees it.
#[derive(Clone, Debug, Default)]
struct Estimate {
    latest_us: f64,
    mean: (f64, f64),
    last_mean_us: f64,
    ewma_us: f64,
    variation_us: f64,
    least: LeastRtt,
}

impl Estimate {
    fn is_empty(&self) -> bool {
        self.latest_us == 0.0
    }

    fn add(&mut self, now: Time, rtt_us: u32, estimator: RttEstimator) {
        let us = f64::from(rtt_us);
        if self.is_empty() {
            // RFC 6298 §2.2.
            (self.ewma_us, self.variation_us) = (us, us / 2.0);
        } else {
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

    fn get(&self, estimator: RttEstimator) -> Duration {
        let us = match estimator {
            RttEstimator::Latest => self.latest_us,
            RttEstimator::Mean if self.mean.1 > 0.0 => self.mean.0 / self.mean.1,
            RttEstimator::Mean => self.last_mean_us,
            RttEstimator::Ewma => self.ewma_us,
            RttEstimator::JacobsonKarels => self.ewma_us + 4.0 * self.variation_us,
            RttEstimator::MinFiltered => self.least.get().as_secs_f64() * 1e6,
        };
        Duration::from_secs_f64(us * 1e-6)
    }

    /// The estimate at an interval's end; the mean begins anew.
    fn close(&mut self, estimator: RttEstimator) -> Duration {
        let estimate = self.get(estimator);
        self.last_mean_us = estimate.as_secs_f64() * 1e6;
        self.mean = (0.0, 0.0);
        estimate
    }
}
