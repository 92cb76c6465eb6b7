//! Spaces packets in time.

use headway_cc::{Bytes, Duration, Rate, Time};

/// Lets packets go at a rate, up to a quantum at once.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    /// When the next packet would go if none went in bursts.
    next: Time,
    /// The last (rate, size) and how long it takes: both seldom change.
    cached: (Rate, u64, Duration),
}

impl Pacer {
    /// When a packet may go; not after `now` means at once.
    #[inline]
    pub(super) fn release(&self, rate: Rate, size: Bytes, quantum: Bytes) -> Time {
        let ahead = quantum.saturating_sub(size);
        match ahead {
            Bytes::ZERO => self.next,
            _ => self.next.saturating_sub(rate.time_to_send(ahead)),
        }
    }

    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, rate: Rate, size: Bytes) {
        if self.cached.0 != rate || self.cached.1 != size.get() {
            self.cached = (rate, size.get(), rate.time_to_send(size));
        }
        self.next = self.next.max(now) + self.cached.2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantum_goes_at_once_and_the_rate_holds() {
        let (rate, size) = (Rate::from_mbps(12.0), Bytes::new(1500));
        for quantum in [size, size * 4] {
            let mut pacer = Pacer::default();
            let mut now = Time::ZERO;
            let mut at_start = 0;
            for _ in 0..1000 {
                now = now.max(pacer.release(rate, size, quantum));
                at_start += u64::from(now == Time::ZERO);
                pacer.on_sent(now, rate, size);
            }
            assert_eq!(at_start, quantum.get() / size.get());
            assert!(now.as_secs_f64() > 0.99 && now.as_secs_f64() < 1.0);
        }
    }
}
