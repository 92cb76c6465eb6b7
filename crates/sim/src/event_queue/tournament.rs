//! A tournament of times with nodes of eight: one cache line each, searched without branches.

use headway_cc::Time;

const WIDTH: usize = 8;

/// Times by slot; the smallest is known at once. To move a time costs a search of eight times a
/// level.
#[derive(Debug)]
pub(super) struct Tournament {
    times: Vec<u64>,
    /// The smallest of each eight times, then of each eight of those, until eight or fewer are
    /// left.
    minima: Vec<Vec<u64>>,
}

impl Tournament {
    pub(super) fn new(slots: usize) -> Tournament {
        assert!(slots > 0);
        let mut minima = Vec::new();
        let mut count = slots;
        while count > WIDTH {
            count = count.div_ceil(WIDTH);
            minima.push(vec![u64::MAX; count]);
        }
        Tournament {
            times: vec![u64::MAX; slots],
            minima,
        }
    }

    /// The smallest time and its slot; among equal times, the lowest slot.
    #[inline]
    pub(super) fn first(&self) -> (Time, usize) {
        let mut node = 0;
        for level in self.minima.iter().rev() {
            node = node * WIDTH + winner(&level[node * WIDTH..]).1;
        }
        let first = node * WIDTH;
        let (time, at) = winner(&self.times[first..]);
        (Time::from_nanos(time), first + at)
    }

    #[inline]
    pub(super) fn get(&self, slot: usize) -> Time {
        Time::from_nanos(self.times[slot])
    }

    #[inline]
    pub(super) fn set(&mut self, slot: usize, time: Time) {
        self.times[slot] = time.as_nanos();
        let mut below = &self.times;
        let mut at = slot;
        for level in &mut self.minima {
            at /= WIDTH;
            level[at] = winner(&below[at * WIDTH..]).0;
            below = level;
        }
    }
}

/// The smallest of the first eight times, and its position.
#[inline]
fn winner(times: &[u64]) -> (u64, usize) {
    let mut best = (u64::MAX, 0);
    for (i, &time) in times.iter().take(WIDTH).enumerate() {
        best = if time < best.0 { (time, i) } else { best };
    }
    best
}
