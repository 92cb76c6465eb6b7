//! The recent throughput, and its recent maximum.

use headway_cc::{Duration, MaxFilter};

/// The throughput over the time in which an answer takes effect, and its recent maximum. A cellular
/// link's rate changes within a round trip, so a mean over one is late. A burst of acknowledgements
/// does not show the rate. A link that pauses returns to the rate that it had just before.
#[derive(Clone, Debug)]
pub(crate) struct RecentRate {
    /// The mean, in packets a second.
    mean: f64,
    /// The maximum, by milliseconds of `remembered_ms`.
    peak: MaxFilter<f64>,
    /// The time that has passed, with long intervals cut short.
    remembered_ms: f64,
}

impl RecentRate {
    /// The time constant of the mean, in minimum RTTs of the last 10 s.
    const ROUND_TRIPS: f64 = 0.7;
    /// How long the maximum is remembered, in milliseconds.
    const MEMORY_MS: u64 = 100;
    /// The most that an interval counts for, in milliseconds. A link that pauses continues at its
    /// old rate.
    const LONGEST_MS: f64 = 10.0;

    pub fn new() -> RecentRate {
        RecentRate {
            mean: 0.0,
            remembered_ms: 0.0,
            peak: MaxFilter::new(RecentRate::MEMORY_MS),
        }
    }

    /// Adds an interval with `rate` packets a second.
    pub fn add(&mut self, length: Duration, rate: f64, min_rtt_us: u32) {
        let constant = RecentRate::ROUND_TRIPS * 1e-6 * f64::from(min_rtt_us);
        let kept = match constant > 0.0 {
            true => libm::exp(-length.as_secs_f64() / constant),
            false => 0.0,
        };
        self.mean = rate + kept * (self.mean - rate);
        self.remembered_ms += length.as_millis_f64().min(RecentRate::LONGEST_MS);
        self.peak.update(self.remembered_ms as u64, self.mean);
    }

    /// The mean, in packets a second.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The largest mean of the last 100 ms, to 1 ms. An interval counts for 10 ms at most.
    pub fn peak(&self) -> f64 {
        self.peak.max()
    }
}
