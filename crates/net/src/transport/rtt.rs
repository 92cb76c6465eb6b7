//! Round-trip statistics and the retransmission timeout (RFC 6298).

use headway_cc::{Duration, RttStats};

/// The lower bound of a retransmission timeout.
#[derive(Clone, Copy, Debug)]
pub(super) enum RtoFloor {
    /// The timeout is at least this (RFC 6298 §2.4).
    Whole(Duration),
    /// The timeout is at least this much longer than the smoothed RTT, as in Linux.
    AboveRtt(Duration),
}

/// Computes the statistics and the timeout from RTT samples.
#[derive(Debug)]
pub(super) struct RttEstimator {
    stats: RttStats,
    floor: RtoFloor,
    has_sample: bool,
}

impl RttEstimator {
    /// The timeout before the first sample (RFC 6298 §2.1).
    const INITIAL_RTO: Duration = Duration::from_secs(1);
    const MAX_RTO: Duration = Duration::from_secs(60);

    pub(super) fn new(floor: RtoFloor) -> RttEstimator {
        RttEstimator {
            stats: RttStats::default(),
            floor,
            has_sample: false,
        }
    }

    pub(super) fn stats(&self) -> RttStats {
        self.stats
    }

    /// Adds a sample (RFC 6298 §2.2-2.3, gains 1/8 and 1/4).
    #[inline]
    pub(super) fn sample(&mut self, rtt: Duration) {
        let s = &mut self.stats;
        s.latest = rtt;
        if self.has_sample {
            let deviation = s.smoothed.abs_diff(rtt).as_nanos();
            s.variation = Duration::from_nanos((3 * s.variation.as_nanos() + deviation) / 4);
            s.smoothed = Duration::from_nanos((7 * s.smoothed.as_nanos() + rtt.as_nanos()) / 8);
            s.min = s.min.min(rtt);
        } else {
            self.has_sample = true;
            *s = RttStats {
                latest: rtt,
                smoothed: rtt,
                variation: rtt / 2,
                min: rtt,
            };
        }
    }

    /// The timeout: RFC 6298 §2.3, §2.4 and, with `backoff` timeouts in a row, §5.5.
    #[inline]
    pub(super) fn rto(&self, backoff: u32) -> Duration {
        let spread = self.stats.variation * 4;
        let rto = match self.floor {
            _ if !self.has_sample => Self::INITIAL_RTO,
            RtoFloor::Whole(floor) => (self.stats.smoothed + spread).max(floor),
            RtoFloor::AboveRtt(floor) => self.stats.smoothed + spread.max(floor),
        };
        Duration::from_nanos(rto.as_nanos() << backoff.min(10)).min(Self::MAX_RTO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rtt_statistics_match_rfc_6298() {
        let ms = Duration::from_millis;
        let mut rtt = RttEstimator::new(RtoFloor::Whole(ms(1)));
        assert_eq!(rtt.rto(0), Duration::from_secs(1));
        rtt.sample(ms(100));
        assert_eq!(rtt.rto(0), ms(300)); // 100 + 4 * 50
        rtt.sample(ms(200));
        // RTTVAR = 3/4 * 50 + 1/4 * 100 = 62.5, SRTT = 7/8 * 100 + 1/8 * 200 = 112.5
        assert_eq!(rtt.stats().variation, Duration::from_micros(62_500));
        assert_eq!(rtt.stats().smoothed, Duration::from_micros(112_500));
        assert_eq!(rtt.rto(0), Duration::from_micros(362_500));
        assert_eq!(rtt.rto(2), Duration::from_micros(1_450_000));
        assert_eq!(rtt.rto(30), Duration::from_secs(60));
        assert_eq!(rtt.stats().min, ms(100));
    }

    #[test]
    fn linux_keeps_its_floor_above_the_rtt() {
        let ms = Duration::from_millis;
        let mut rtt = RttEstimator::new(RtoFloor::AboveRtt(ms(200)));
        (0..100).for_each(|_| rtt.sample(ms(300)));
        assert_eq!(rtt.rto(0), ms(500));
    }
}
