//! How quantities spread over the acknowledgements of an interval: mvfst-rl's summaries.

use crate::Record;

/// How quantities spread over an interval's acknowledgements. All zero in an interval without any.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// RTT samples, in microseconds.
    pub rtt_us: Statistics,
    /// The smoothed RTT, in microseconds.
    pub srtt_us: Statistics,
    /// The mean deviation of the RTT, in microseconds.
    pub rttvar_us: Statistics,
    /// RTT samples less the flow's least, in microseconds.
    pub queue_delay_us: Statistics,
    /// The congestion window in packets.
    pub cwnd: Statistics,
    /// Packets in flight.
    pub in_flight: Statistics,
    /// Packets sent since the acknowledgement before.
    pub sent: Statistics,
    /// Packets acknowledged at once.
    pub acked: Statistics,
    /// Packets taken for lost since the acknowledgement before.
    pub lost: Statistics,
}

impl Spread {
    /// The record that follows `before`.
    pub(crate) fn add(&mut self, record: &Record, before: &Record) {
        if record.rtt_us > 0 {
            let queue = record.rtt_us.saturating_sub(record.min_rtt_us);
            self.rtt_us.add(record.rtt_us);
            self.queue_delay_us.add(queue);
        }
        self.srtt_us.add(record.srtt_us);
        self.rttvar_us.add(record.rttvar_us);
        self.cwnd.add(record.cwnd);
        self.in_flight.add(record.in_flight);
        self.sent.add(record.sent.wrapping_sub(before.sent));
        self.acked
            .add(record.delivered.wrapping_sub(before.delivered));
        self.lost.add(record.lost.wrapping_sub(before.lost));
    }
}

/// Running statistics of whole numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    count: u32,
    first: u32,
    least: u32,
    largest: u32,
    /// Sums of what is beyond the first, so that squares of large numbers do not drown small differences.
    sum: f64,
    squares: f64,
}

impl Statistics {
    fn add(&mut self, sample: u32) {
        if self.count == 0 {
            (self.first, self.least, self.largest) = (sample, sample, sample);
        }
        self.count += 1;
        self.least = self.least.min(sample);
        self.largest = self.largest.max(sample);
        let beyond = f64::from(sample) - f64::from(self.first);
        self.sum += beyond;
        self.squares += beyond * beyond;
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        f64::from(self.first) + self.sum / f64::from(self.count.max(1))
    }

    /// The standard deviation, by the number of samples.
    pub fn std(&self) -> f64 {
        let n = f64::from(self.count.max(1));
        let mean = self.sum / n;
        (self.squares / n - mean * mean).max(0.0).sqrt()
    }

    /// The least.
    pub fn min(&self) -> f64 {
        f64::from(self.least)
    }

    /// The largest.
    pub fn max(&self) -> f64 {
        f64::from(self.largest)
    }
}
