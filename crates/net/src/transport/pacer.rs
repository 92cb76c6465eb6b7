//! Spaces packets in time.

use headway_cc::{Bytes, Duration, Rate, Time};

/// Lets packets go at a rate, up to a quantum at once.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    /// When the next packet would leave if there were no bursts.
    next: Time,
    /// The rate by which `next` was computed.
    rate: Rate,
    /// The last size and its transmission time: both seldom change.
    cached: (u64, Duration),
    /// Whether pacing alone has held packets back without interruption. Then a host in real time
    /// that wakes late makes up for the delay; in simulated time no host is late.
    is_holding: bool,
}

impl Pacer {
    /// The most lateness that a host makes up for, so that its own pause does not end in a burst.
    const MOST_LATE: Duration = Duration::from_millis(2);

    /// When a packet may leave; a time not after `now` means at once. A new rate counts from now
    /// on, also for the wait for packets that were sent before it.
    #[inline]
    pub(super) fn release(&mut self, now: Time, rate: Rate, size: Bytes, quantum: Bytes) -> Time {
        if rate != self.rate {
            if self.next > now {
                let owed = self.rate.bytes_in(self.next.since(now));
                self.next = now + rate.time_to_send(owed);
            }
            self.rate = rate;
            self.cached = (0, Duration::ZERO);
        }
        let ahead = quantum.saturating_sub(size);
        let release = match ahead {
            Bytes::ZERO => self.next,
            _ => self.next.saturating_sub(rate.time_to_send(ahead)),
        };
        self.is_holding |= release > now;
        release
    }

    /// Something else holds packets back, so the pacer does not make up for the time lost.
    #[inline]
    pub(super) fn rest(&mut self) {
        self.is_holding = false;
    }

    /// A packet leaves now, as [`release`](Self::release) has allowed.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, size: Bytes) {
        if self.cached.0 != size.get() {
            self.cached = (size.get(), self.rate.time_to_send(size));
        }
        let earliest = match self.is_holding {
            true => now.saturating_sub(Self::MOST_LATE),
            false => now,
        };
        self.next = self.next.max(earliest) + self.cached.1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1500 bytes a millisecond, by a host that wakes 0.3 ms late each time: the packets leave
    /// late, but as many as on time.
    #[test]
    fn a_host_that_wakes_late_keeps_the_rate() {
        let (rate, size) = (Rate::from_mbps(12.0), Bytes::new(1500));
        let late = Duration::from_micros(300);
        let mut pacer = Pacer::default();
        let mut now = Time::from_millis(5);
        for i in 0..1000 {
            assert!(pacer.release(now, rate, size, size) <= now, "{i}");
            pacer.on_sent(now, size);
            now = pacer.release(now, rate, size, size) + late;
        }
        let ideal = Time::from_millis(1005);
        assert_eq!(now, ideal + late);
        // It sleeps through 50 packets: it makes up for two of them, and the current one leaves
        // too.
        now += Duration::from_millis(50);
        let mut burst = 0;
        while pacer.release(now, rate, size, size) <= now {
            pacer.on_sent(now, size);
            burst += 1;
        }
        assert_eq!(burst, 3);
        // The window was full for a while, so there is no credit.
        pacer.rest();
        now += Duration::from_millis(50);
        pacer.on_sent(now, size);
        assert_eq!(
            pacer.release(now, rate, size, size),
            now + Duration::from_millis(1)
        );
    }

    #[test]
    fn a_quantum_leaves_at_once_and_the_rate_holds() {
        let (rate, size) = (Rate::from_mbps(12.0), Bytes::new(1500));
        for quantum in [size, size * 4] {
            let mut pacer = Pacer::default();
            let mut now = Time::ZERO;
            let mut at_start = 0;
            for _ in 0..1000 {
                now = now.max(pacer.release(now, rate, size, quantum));
                at_start += u64::from(now == Time::ZERO);
                pacer.on_sent(now, size);
            }
            assert_eq!(at_start, quantum.get() / size.get());
            assert!(now.as_secs_f64() > 0.99 && now.as_secs_f64() < 1.0);
        }
    }

    #[test]
    fn a_new_rate_takes_effect_at_once() {
        let mut pacer = Pacer::default();
        let (slow, fast) = (Rate::from_bps(100), Rate::from_mbps(10.0));
        let size = Bytes::new(1000);
        assert_eq!(pacer.release(Time::ZERO, slow, size, size), Time::ZERO);
        pacer.on_sent(Time::ZERO, size);
        assert_eq!(
            pacer.release(Time::ZERO, slow, size, size),
            Time::from_millis(80_000)
        );
        // After 40 s half of the packet is still to be waited for: 400 us at the new rate.
        let now = Time::from_millis(40_000);
        let release = pacer.release(now, fast, size, size);
        assert_eq!(release, now + Duration::from_micros(400));
        assert_eq!(pacer.release(now, Rate::ZERO, size, size), Time::NEVER);
        assert!(pacer.release(now, fast, size, size) <= now);
    }
}
