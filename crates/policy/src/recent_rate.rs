//! What has been delivered lately: how much, and how much at best.

use headway_cc::{Duration, MaxFilter};

/// Throughput over the time that an answer takes to show, and the largest recent one. A cellular
/// link's rate changes within a round trip: a mean over one is late, a burst of acknowledgements is
/// no rate, and the rate of a moment ago is what a link that pauses goes back to.
#[derive(Clone, Debug)]
pub(crate) struct RecentRate {
    /// Packets a second.
    mean: f64,
    /// By milliseconds of `remembered_ms`.
    peak: MaxFilter<f64>,
    /// The time that has passed, long intervals cut short.
    remembered_ms: f64,
}

impl RecentRate {
    /// Time constant of the mean, in minimum RTTs of the last 10 s.
    const ROUND_TRIPS: f64 = 0.7;
    /// How long the largest is remembered, in milliseconds.
    const MEMORY_MS: u64 = 100;
    /// What an interval counts for at most, in milliseconds: a link that pauses goes on as it did
    /// before.
    const LONGEST_MS: f64 = 10.0;

    pub fn new() -> RecentRate {
        RecentRate {
            mean: 0.0,
            remembered_ms: 0.0,
            peak: MaxFilter::new(RecentRate::MEMORY_MS),
        }
    }

    /// Packets a second over an interval.
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

    /// Packets a second.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The largest mean of the last 100 ms, to 1 ms, of which an interval counts for 10 at most.
    pub fn peak(&self) -> f64 {
        self.peak.max()
    }
}
