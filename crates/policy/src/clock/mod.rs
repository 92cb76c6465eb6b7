//! When a policy decides.

mod estimate;

use headway_cc::{Duration, Time};
use serde::{Deserialize, Serialize};

use crate::{Record, SpecError};
use estimate::Estimate;

pub use estimate::RttEstimator;

/// When a policy decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ClockSpec {
    /// At every acknowledgement (Rax).
    EveryAck,
    /// At the first acknowledgement after each tick of a clock that all flows share (Owl's
    /// jiffies).
    Jiffies {
        /// Ticks a second.
        hz: f64,
    },
    /// Every fixed number of milliseconds, also if nothing was acknowledged since the last decision
    /// (Orca, the BBR tuner).
    Period {
        /// The period, in milliseconds.
        ms: f64,
        /// Do all flows decide at the same ticks, as the reports of a host come (the BBR tuner's
        /// T2)? If not, each flow's periods start with the flow.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        shared: bool,
    },
    /// Every `n` times an estimate of the RTT (Aurora, the interval study).
    Rtt {
        /// The multiple.
        n: f64,
        /// The estimate of the RTT.
        estimator: RttEstimator,
    },
    /// At a multiple of an estimate of the RTT that the policy's last answer chose (the interval
    /// study's future work). An answer of -1 means `least`, 1 means `most`, and the scale between
    /// them is logarithmic.
    Chosen {
        /// The estimate of the RTT.
        estimator: RttEstimator,
        /// The smallest multiple.
        least: f64,
        /// The largest multiple.
        most: f64,
    },
}

impl ClockSpec {
    /// Checks that the clock can run.
    ///
    /// # Errors
    /// [`SpecError`] if a number is out of range.
    pub fn check(&self) -> Result<(), SpecError> {
        let (what, value, min, max) = match *self {
            ClockSpec::EveryAck => return Ok(()),
            ClockSpec::Jiffies { hz } => ("hz", hz, 1.0, 10_000.0),
            ClockSpec::Period { ms, .. } => ("ms", ms, 0.1, 3_600_000.0),
            ClockSpec::Rtt { n, .. } => ("n", n, 0.01, 1000.0),
            ClockSpec::Chosen { least, most, .. } if 0.01 <= least && least < most => {
                ("most", most, 0.01, 1000.0)
            }
            ClockSpec::Chosen { least, .. } => {
                return Err(SpecError(format!(
                    "clock: least is {least}, must be from 0.01 to below most"
                )));
            }
        };
        match (min..=max).contains(&value) {
            true => Ok(()),
            false => Err(SpecError(format!(
                "clock: {what} is {value}, must be from {min} to {max}"
            ))),
        }
    }

    /// Does the policy choose its intervals?
    pub fn is_chosen(&self) -> bool {
        matches!(self, ClockSpec::Chosen { .. })
    }

    /// The estimate of the RTT that the clock needs, if any.
    fn estimator(&self) -> Option<RttEstimator> {
        match *self {
            ClockSpec::Rtt { estimator, .. } | ClockSpec::Chosen { estimator, .. } => {
                Some(estimator)
            }
            _ => None,
        }
    }

    /// Does every flow decide at the same times, whatever is acknowledged?
    pub fn is_fixed(&self) -> bool {
        matches!(self, ClockSpec::Period { .. })
    }
}

/// A flow's clock.
#[derive(Clone, Debug)]
pub struct Clock {
    spec: ClockSpec,
    due: Time,
    /// When the current interval began, and its length in estimates of the RTT.
    begun: Time,
    n: f64,
    estimate: Estimate,
}

impl Clock {
    /// The shortest interval. A shorter one would hold too little information, and cost much.
    const MIN_INTERVAL: Duration = Duration::from_micros(100);

    /// The clock of a flow that begins at `start`.
    pub fn new(spec: &ClockSpec, start: Time) -> Clock {
        let due = match *spec {
            ClockSpec::EveryAck | ClockSpec::Rtt { .. } | ClockSpec::Chosen { .. } => start,
            ClockSpec::Jiffies { .. } => start,
            ClockSpec::Period { ms, shared } => {
                let period = Duration::from_secs_f64(ms * 1e-3);
                let since_tick = match shared {
                    true => Duration::from_nanos(start.as_nanos() % period.as_nanos()),
                    false => Duration::ZERO,
                };
                start + (period - since_tick)
            }
        };
        Clock {
            spec: spec.clone(),
            due,
            begun: start,
            n: match *spec {
                ClockSpec::Rtt { n, .. } => n,
                // Until the policy chooses, intervals are as long as for an answer of 0.
                ClockSpec::Chosen { least, most, .. } => (least * most).sqrt(),
                _ => 1.0,
            },
            estimate: Estimate::default(),
        }
    }

    /// An acknowledgement gave an RTT sample.
    #[inline]
    pub fn on_record(&mut self, record: &Record) {
        if record.rtt_us > 0
            && let Some(estimator) = self.spec.estimator()
        {
            let is_first = self.estimate.is_empty();
            self.estimate.add(record.now(), record.rtt_us, estimator);
            if is_first {
                self.begun = record.now();
                self.due = self.begun + self.length(self.estimate.get(estimator));
            }
        }
    }

    /// Is it time to decide? `has_news` says whether an acknowledgement or timeout came since the
    /// last decision. Only a fixed period ends without one.
    pub fn is_due(&self, now: Time, has_news: bool) -> bool {
        now >= self.due && (has_news || self.spec.is_fixed())
    }

    /// The earliest time of the next decision.
    pub fn due(&self) -> Time {
        self.due
    }

    /// When the host's timer should fire; never if only an acknowledgement can cause a decision.
    pub fn next_timer(&self, has_news: bool) -> Time {
        match self.spec {
            ClockSpec::Period { .. } => self.due,
            ClockSpec::Rtt { .. } | ClockSpec::Chosen { .. }
                if has_news && !self.estimate.is_empty() =>
            {
                self.due
            }
            _ => Time::NEVER,
        }
    }

    /// A decision was due at `now`. Computes when the next one is.
    pub fn restart(&mut self, now: Time) {
        self.due = match self.spec {
            ClockSpec::EveryAck => now,
            ClockSpec::Jiffies { hz } => {
                let jiffy = 1e9 / hz;
                Time::from_nanos(
                    ((now.as_nanos() as f64 / jiffy).floor() * jiffy + jiffy).ceil() as u64,
                )
            }
            // A late decision does not shift the later ones.
            ClockSpec::Period { ms, .. } => {
                let period = Duration::from_secs_f64(ms * 1e-3);
                let missed = now.since(self.due).as_nanos() / period.as_nanos();
                self.due + period * (missed + 1)
            }
            ClockSpec::Rtt { estimator, .. } | ClockSpec::Chosen { estimator, .. } => {
                let estimate = self.estimate.close(estimator);
                now + self.length(estimate)
            }
        };
        self.begun = now;
    }

    /// Sets the length of the interval that has just begun from a policy's answer: from -1 to 1, as
    /// [`ClockSpec::Chosen`] says. `None`, or a value that is not a number, keeps the last length.
    pub fn choose(&mut self, interval: Option<f32>) {
        if let ClockSpec::Chosen {
            estimator,
            least,
            most,
        } = self.spec
            && let Some(interval) = interval.filter(|interval| !interval.is_nan())
        {
            let share = (f64::from(interval).clamp(-1.0, 1.0) + 1.0) / 2.0;
            self.n = least * libm::pow(most / least, share);
            self.due = self.begun + self.length(self.estimate.get(estimator));
        }
    }

    /// The length of an interval for this estimate of the RTT.
    fn length(&self, estimate: Duration) -> Duration {
        estimate.mul_f64(self.n).max(Clock::MIN_INTERVAL)
    }
}
