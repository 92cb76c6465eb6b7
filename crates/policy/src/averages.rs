//! Averages over the whole flow that every acknowledgement updates, as Remy and Rax have them.

use crate::Record;

/// Exponentially weighted averages of the flow so far, each with the gains 1/8 and 1/256 (Rax §3.2,
/// after Remy). Each average begins with its first sample, and that of losses with 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Averages {
    /// Time between acknowledgements, in microseconds.
    pub ack_gap_us: Average,
    /// RTT samples, in microseconds.
    pub rtt_us: Average,
    /// Losses: 1 for a packet that was lost, 0 for one that arrived.
    pub loss: Average,
    /// The congestion window in packets.
    pub cwnd: Average,
}

/// A quantity averaged with two gains.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Average {
    /// The average with gain 1/8.
    pub fast: f64,
    /// The average with gain 1/256.
    pub slow: f64,
    has_begun: bool,
}

impl Averages {
    /// Adds `record`, the one after `before`.
    pub(crate) fn add(&mut self, record: &Record, before: &Record) {
        let (lost, delivered) = (
            record.lost.wrapping_sub(before.lost),
            record.delivered.wrapping_sub(before.delivered),
        );
        // A packet is known to be lost only once later packets have arrived, so losses are added
        // first.
        self.loss.has_begun = true;
        self.loss.add_many(1.0, lost);
        self.loss.add_many(0.0, delivered);
        if record.acks == 0 {
            return;
        }
        if before.acks > 0 {
            let gap = record.now_ns.saturating_sub(before.now_ns);
            self.ack_gap_us.add(gap as f64 * 1e-3);
        }
        if record.rtt_us > 0 {
            self.rtt_us.add(f64::from(record.rtt_us));
        }
        self.cwnd.add(f64::from(record.cwnd));
    }
}

impl Average {
    fn add(&mut self, sample: f64) {
        if !self.has_begun {
            (self.fast, self.slow, self.has_begun) = (sample, sample, true);
        }
        self.fast += (sample - self.fast) / 8.0;
        self.slow += (sample - self.slow) / 256.0;
    }

    /// Adds the same sample this many times.
    fn add_many(&mut self, sample: f64, times: u32) {
        match times {
            0 => {}
            1 => self.add(sample),
            _ => {
                let left = |gain: f64| libm::pow(1.0 - gain, f64::from(times));
                self.fast = sample + (self.fast - sample) * left(1.0 / 8.0);
                self.slow = sample + (self.slow - sample) * left(1.0 / 256.0);
            }
        }
    }
}
