//! A tournament of times with nodes of eight: one cache line each, searched without branches.

use headway_cc::Time;

const WIDTH: usize = 8;

/// Times by slot, the least at hand. Moving one costs a search of eight times a level.
#[derive(Debug)]
pub(super) struct Tournament {
    /// The slots' times, then the least of each eight of the level before, up to eight or fewer.
    levels: Vec<Vec<u64>>,
}

impl Tournament {
    pub(super) fn new(slots: usize) -> Tournament {
        assert!(slots > 0);
        let mut levels = vec![vec![u64::MAX; slots]];
        let mut count = slots;
        while count > WIDTH {
            count = count.div_ceil(WIDTH);
            levels.push(vec![u64::MAX; count]);
        }
        Tournament { levels }
    }

    /// The least time and its slot, the lowest of equals.
    #[inline]
    pub(super) fn first(&self) -> (Time, usize) {
        let (mut time, mut slot) = (u64::MAX, 0);
        for level in self.levels.iter().rev() {
            (time, slot) = least(level, slot);
        }
        (Time::from_nanos(time), slot)
    }

    #[inline]
    pub(super) fn get(&self, slot: usize) -> Time {
        Time::from_nanos(self.levels[0][slot])
    }

    #[inline]
    pub(super) fn set(&mut self, slot: usize, time: Time) {
        let (mut at, mut time) = (slot, time.as_nanos());
        let mut levels = self.levels.iter_mut();
        let Some(mut level) = levels.next() else {
            return;
        };
        level[at] = time;
        for above in levels {
            (time, _) = least(level, at / WIDTH);
            at /= WIDTH;
            level = above;
            level[at] = time;
        }
    }
}

/// The least time of a node and where in the level it stands.
#[inline]
fn least(level: &[u64], node: usize) -> (u64, usize) {
    let first = node * WIDTH;
    let mut best = (u64::MAX, first);
    for (i, &time) in level[first..].iter().take(WIDTH).enumerate() {
        best = if time < best.0 {
            (time, first + i)
        } else {
            best
        };
    }
    best
}
