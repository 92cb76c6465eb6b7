//! The minimum and the maximum of recent RTTs.

use std::collections::VecDeque;

use crate::{Duration, Time};

/// The extreme of the samples of the last `window`, which may differ in every call. The newest
/// sample always counts, however old it is.
#[derive(Clone, Debug)]
pub struct Extreme {
    /// Does `a` make the earlier `b` irrelevant?
    replaces: fn(a: Duration, b: Duration) -> bool,
    /// Samples that are or can become the extreme, the oldest and most extreme first.
    candidates: VecDeque<(Time, Duration)>,
}

impl Extreme {
    /// A filter for the minimum.
    pub fn min() -> Extreme {
        Extreme::new(|a, b| a <= b)
    }

    /// A filter for the maximum.
    pub fn max() -> Extreme {
        Extreme::new(|a, b| a >= b)
    }

    fn new(replaces: fn(Duration, Duration) -> bool) -> Extreme {
        Extreme {
            replaces,
            candidates: VecDeque::new(),
        }
    }

    /// Adds a sample. Returns the extreme of the samples since `window` before `now`.
    pub fn update(&mut self, now: Time, window: Duration, sample: Duration) -> Duration {
        while self
            .candidates
            .back()
            .is_some_and(|&(_, s)| (self.replaces)(sample, s))
        {
            self.candidates.pop_back();
        }
        self.candidates.push_back((now, sample));
        let oldest = now.saturating_sub(window);
        while self.candidates[0].0 < oldest {
            self.candidates.pop_front();
        }
        self.candidates[0].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stream;

    #[test]
    fn agrees_with_a_search_through_the_window() {
        let mut random = Stream::new(1, "filter");
        let (mut min, mut max) = (Extreme::min(), Extreme::max());
        let window = Duration::from_nanos(100);
        let mut all: Vec<(Time, Duration)> = Vec::new();
        let mut now = Time::ZERO;
        for _ in 0..5000 {
            now += Duration::from_nanos(random.below(3) / 2 * random.below(60));
            let sample = Duration::from_nanos(random.below(1000));
            all.push((now, sample));
            let recent = || {
                let recent = all.iter().rev().take_while(|s| now.since(s.0) <= window);
                recent.map(|s| s.1)
            };
            assert_eq!(Some(min.update(now, window, sample)), recent().min());
            assert_eq!(Some(max.update(now, window, sample)), recent().max());
        }
    }
}
