//! The delay of a path without a queue, as RFC 6817 estimates it.

use crate::Time;

/// `base_delays`: the minimum one-way delay of each of the last minutes, in nanoseconds. It may be
/// negative, since the two clocks need not agree.
#[derive(Debug)]
pub(crate) struct BaseDelay {
    minima: Vec<i64>,
    /// The minute of the last entry.
    minute: Option<u64>,
}

impl BaseDelay {
    const MINUTE: u64 = 60_000_000_000;

    /// A history of this number of minutes, at least one.
    pub fn new(minutes: usize) -> BaseDelay {
        BaseDelay {
            minima: vec![i64::MAX; minutes.max(1)],
            minute: None,
        }
    }

    /// RFC 6817 §2.4.2, `update_base_delay`: a list that moves on when a sample comes in a new
    /// minute. Minutes without samples have no place in it.
    pub fn update(&mut self, now: Time, delay: i64) {
        let minute = now.as_nanos() / Self::MINUTE;
        if self.minute != Some(minute) {
            self.minute = Some(minute);
            self.minima.rotate_left(1);
            *self.newest() = i64::MAX;
        }
        let newest = self.newest();
        *newest = delay.min(*newest);
    }

    fn newest(&mut self) -> &mut i64 {
        self.minima.last_mut().expect("a minute at least")
    }

    /// The minimum of all minutes; `i64::MAX` before the first sample.
    pub fn min(&self) -> i64 {
        self.minima.iter().copied().min().unwrap_or(i64::MAX)
    }

    /// Clears the history.
    pub fn forget(&mut self) {
        self.minima.fill(i64::MAX);
    }
}

impl Default for BaseDelay {
    /// RFC 6817 §2.4.2: BASE_HISTORY should be 10.
    fn default() -> BaseDelay {
        BaseDelay::new(10)
    }
}
