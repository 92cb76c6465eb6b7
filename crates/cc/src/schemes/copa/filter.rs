//! The least and the most of the RTTs seen lately.

use std::collections::VecDeque;

use crate::{Duration, Time};

/// The extreme of the samples of the last `window`, which may be another at every call. The newest
/// sample counts however old it is.
#[derive(Clone, Debug)]
pub struct Extreme {
    /// Does `a` make an earlier `b` of no account?
    replaces: fn(a: Duration, b: Duration) -> bool,
    /// Samples that are or may yet become the extreme, oldest and most extreme first.
    candidates: VecDeque<(Time, Duration)>,
}

impl Extreme {
    /// Of the least.
    pub fn min() -> Extreme {
        Extreme::new(|a, b| a <= b)
    }

    /// Of the most.
    pub fn max() -> Extreme {
        Extreme::new(|a, b| a >= b)
    }

    fn new(replaces: fn(Duration, Duration) -> bool) -> Extreme {
        Extreme {
            replaces,
            candidates: VecDeque::new(),
        }
    }

    /// Folds a sample; returns the extreme of those from `window` before `now` on.
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
