//! The time of a run.

use headway_cc::{Duration, Time};
use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

/// `CLOCK_MONOTONIC` since a run's epoch. Copies tell the same time, in every thread and namespace.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch_ns: u64,
}

impl Clock {
    /// The epoch is now.
    pub fn start() -> Clock {
        Clock {
            epoch_ns: monotonic_ns(),
        }
    }

    /// The epoch is `delay` from now; [`now`](Self::now) is zero till then.
    pub fn start_in(delay: Duration) -> Clock {
        Clock {
            epoch_ns: monotonic_ns() + delay.as_nanos(),
        }
    }

    /// Time since the epoch.
    #[inline]
    pub fn now(&self) -> Time {
        Time::from_nanos(monotonic_ns().saturating_sub(self.epoch_ns))
    }

    /// Waits for the epoch.
    pub fn wait_for_epoch(&self) {
        let (seconds, ns) = (self.epoch_ns / 1_000_000_000, self.epoch_ns % 1_000_000_000);
        let epoch = TimeSpec::new(seconds as i64, ns as i64);
        let flags = ClockNanosleepFlags::TIMER_ABSTIME;
        while clock_nanosleep(ClockId::CLOCK_MONOTONIC, flags, &epoch) == Err(Errno::EINTR) {}
    }

    /// `at` on `CLOCK_MONOTONIC`, ns.
    pub(crate) fn monotonic_ns(&self, at: Time) -> u64 {
        self.epoch_ns.saturating_add(at.as_nanos())
    }
}

#[inline]
fn monotonic_ns() -> u64 {
    match clock_gettime(ClockId::CLOCK_MONOTONIC) {
        Ok(at) => at.tv_sec() as u64 * 1_000_000_000 + at.tv_nsec() as u64,
        // Linux always has this clock.
        Err(_) => 0,
    }
}
