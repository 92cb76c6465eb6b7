//! The minimum RTT of the last ten seconds.

use std::collections::VecDeque;

use crate::{Duration, Time};

/// The minimum of the RTT samples of the last 10 s before the newest sample, to 10 ms. Samples are
/// kept in slots of 10 ms, so there are at most a thousand candidates.
#[derive(Clone, Debug, Default)]
pub struct MinRtt {
    /// Slot and sample; both increase.
    candidates: VecDeque<(u64, Duration)>,
    /// The newest sample's slot: its number, its end, and its smallest sample.
    slot: u64,
    slot_ends: Time,
    slot_least: Duration,
    /// The smallest candidate.
    least: Duration,
}

impl MinRtt {
    const SLOT: Duration = Duration::from_millis(10);
    const SLOTS: u64 = 1000;

    /// Adds a sample. Samples come in the order of their times.
    #[inline]
    pub fn add(&mut self, now: Time, rtt: Duration) {
        if now < self.slot_ends && rtt >= self.slot_least {
            return; // most samples
        }
        self.add_candidate(now.as_nanos() / MinRtt::SLOT.as_nanos(), rtt);
    }

    /// Adds a sample that is the smallest of its slot so far.
    fn add_candidate(&mut self, slot: u64, rtt: Duration) {
        self.slot = slot;
        self.slot_ends = Time::ZERO + MinRtt::SLOT * (slot + 1);
        self.slot_least = rtt;
        while (self.candidates.back()).is_some_and(|&(_, least)| least >= rtt) {
            self.candidates.pop_back();
        }
        if (self.candidates.back()).is_none_or(|&(last, _)| last < slot) {
            self.candidates.push_back((slot, rtt));
        }
        while (self.candidates.front()).is_some_and(|&(at, _)| slot - at >= MinRtt::SLOTS) {
            self.candidates.pop_front();
        }
        self.least = (self.candidates.front()).map_or(rtt, |&(_, least)| least);
    }

    /// The minimum; zero before the first sample.
    pub fn get(&self) -> Duration {
        self.least
    }

    /// How much older the last sample with that minimum is than the newest sample, to 10 ms; zero
    /// before the first.
    pub fn age(&self) -> Duration {
        let slots = (self.candidates.front()).map_or(0, |&(at, _)| self.slot - at);
        MinRtt::SLOT * slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stream;

    #[test]
    fn agrees_with_a_search_through_the_window() {
        let mut random = Stream::new(1, "rtts");
        let (mut least, mut all) = (MinRtt::default(), Vec::new());
        let mut ms = 0;
        for _ in 0..20_000 {
            ms += random.below(8);
            // RTTs rise for minutes, so that there are many candidates, and fall now and then.
            let rise = 30_000 + ms % 25_000;
            let rtt = Duration::from_micros(rise + random.below(500));
            least.add(Time::ZERO + Duration::from_millis(ms), rtt);
            all.push((ms / 10, rtt));
            let within = all
                .iter()
                .rev()
                .take_while(|(slot, _)| slot + 1000 > ms / 10);
            let newest_least = within.min_by_key(|&&(_, rtt)| rtt);
            let &(seen, sample) = newest_least.expect("the newest");
            assert_eq!(least.get(), sample);
            assert_eq!(least.age(), Duration::from_millis((ms / 10 - seen) * 10));
            assert!(least.candidates.len() <= 1000);
        }
        assert!(ms > 60_000, "{ms}");
    }
}
