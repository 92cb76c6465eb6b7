//! How many bytes above the estimated rate are acknowledged at once (Linux's `extra_acked`).
//!
//! The draft does not have this. It is as in Linux since 5.1, because a window of two BDP is too
//! small on links that acknowledge in bursts (Wi-Fi, LTE).

use crate::{Bytes, Duration, Feedback, Rate, Time};

/// The number of rounds in each half of the window.
const HALF: u32 = 5;
/// The longest burst that counts.
const MAX_BURST: Duration = Duration::from_millis(100);
/// The largest number of packets of an epoch.
const MAX_EPOCH: u64 = 1 << 20;

/// The largest excess of the last five to ten rounds.
#[derive(Clone, Debug)]
pub struct Aggregation {
    max_epoch: Bytes,
    epoch_start: Time,
    epoch_acked: Bytes,
    /// The maxima of the current and of the previous half of the window.
    excess: [Bytes; 2],
    rounds: u32,
}

impl Aggregation {
    /// An estimate of zero, for packets of `mss`.
    pub fn new(mss: Bytes) -> Aggregation {
        Aggregation {
            max_epoch: mss * MAX_EPOCH,
            epoch_start: Time::ZERO,
            epoch_acked: Bytes::ZERO,
            excess: [Bytes::ZERO; 2],
            rounds: 0,
        }
    }

    /// Takes a feedback. `cwnd` bounds what one burst counts for.
    pub fn update(&mut self, f: &Feedback<'_>, btlbw: Rate, cwnd: Bytes, round_start: bool) {
        if round_start {
            self.rounds += 1;
            if self.rounds >= HALF {
                self.rounds = 0;
                self.excess = [Bytes::ZERO, self.excess[0]];
            }
        }
        let mut expected = btlbw.bytes_in(f.now.since(self.epoch_start));
        if self.epoch_acked <= expected || self.epoch_acked + f.acked_bytes >= self.max_epoch {
            self.restart(f.now);
            expected = Bytes::ZERO;
        }
        self.epoch_acked += f.acked_bytes;
        let excess = self.epoch_acked.saturating_sub(expected).min(cwnd);
        self.excess[0] = self.excess[0].max(excess);
    }

    /// Starts to count again, such as after silence.
    pub fn restart(&mut self, now: Time) {
        (self.epoch_start, self.epoch_acked) = (now, Bytes::ZERO);
    }

    /// The allowance that the window has besides the BDP.
    pub fn allowance(&self, btlbw: Rate) -> Bytes {
        self.excess[0]
            .max(self.excess[1])
            .min(btlbw.bytes_in(MAX_BURST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, feedback};

    fn packet(now: Time) -> Feedback<'static> {
        Feedback {
            acked_bytes: MSS,
            ..feedback(now)
        }
    }

    #[test]
    fn bursts_raise_the_allowance_for_ten_rounds() {
        let (btlbw, cwnd) = (Rate::from_mbps(12.0), MSS * 200);
        let mut a = Aggregation::new(MSS);
        let mut now = Time::ZERO;
        // 20 packets at once every 20 ms are 12 Mbit/s on average, with 20 packets in excess.
        for _ in 0..10 {
            now += Duration::from_millis(20);
            (0..20).for_each(|_| a.update(&packet(now), btlbw, cwnd, false));
        }
        assert_eq!(a.allowance(btlbw), MSS * 20);
        // Then packets come evenly at half the rate, in rounds of 20, until the burst is forgotten.
        let rounds = (1..20).find(|_| {
            for i in 0..20 {
                now += Duration::from_millis(2);
                a.update(&packet(now), btlbw, cwnd, i == 0);
            }
            a.allowance(btlbw) == MSS
        });
        assert_eq!(rounds, Some(10));
    }

    #[test]
    fn a_burst_never_claims_more_than_100_ms() {
        let btlbw = Rate::from_mbps(1.2);
        let mut a = Aggregation::new(MSS);
        (0..50).for_each(|_| a.update(&packet(Time::ZERO), btlbw, MSS * 100, false));
        assert_eq!(a.allowance(btlbw), MSS * 10);
    }
}
