//! A maximum over the last rounds.

use std::collections::VecDeque;

/// The exact maximum of the samples of the last `window` rounds, or of another count. It keeps a
/// falling sequence of the samples that can still become the maximum, at most one a round.
#[derive(Clone, Debug)]
pub struct MaxFilter<T> {
    window: u64,
    /// (round, sample): rounds rise, samples fall.
    candidates: VecDeque<(u64, T)>,
}

impl<T: Copy + PartialOrd + Default> MaxFilter<T> {
    /// A filter over `window` rounds, including the current one.
    pub fn new(window: u64) -> MaxFilter<T> {
        MaxFilter {
            window,
            candidates: VecDeque::new(),
        }
    }

    /// Changes the window to `window` rounds, from the next sample on.
    pub fn set_window(&mut self, window: u64) {
        self.window = window;
    }

    /// Adds a sample of `round`. Rounds never decrease.
    pub fn update(&mut self, round: u64, sample: T) {
        while self
            .candidates
            .front()
            .is_some_and(|&(r, _)| round - r >= self.window)
        {
            self.candidates.pop_front();
        }
        while self.candidates.back().is_some_and(|&(_, s)| s <= sample) {
            self.candidates.pop_back();
        }
        if self.candidates.back().is_none_or(|&(r, _)| r < round) {
            self.candidates.push_back((round, sample));
        }
    }

    /// The maximum; zero before the first sample.
    pub fn max(&self) -> T {
        self.candidates.front().map_or(T::default(), |&(_, s)| s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rate, Stream};

    #[test]
    fn agrees_with_a_search_through_the_window() {
        let mut random = Stream::new(1, "filter");
        let mut filter = MaxFilter::new(10);
        let mut all: Vec<(u64, Rate)> = Vec::new();
        let mut round = 0;
        for _ in 0..5000 {
            round += random.below(3) / 2 * random.below(6);
            let sample = Rate::from_bps(random.below(1000));
            filter.update(round, sample);
            all.push((round, sample));
            let brute = all
                .iter()
                .rev()
                .take_while(|(r, _)| round - r < 10)
                .map(|s| s.1)
                .max();
            assert_eq!(Some(filter.max()), brute);
            assert!(filter.candidates.len() <= 10);
        }
    }
}
