//! The clock of a run.

use std::sync::atomic::{AtomicU64, Ordering};

use headway_cc::{Duration, Time};
use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

/// `CLOCK_MONOTONIC` since a run's epoch. Copies tell the same time, in every thread and namespace.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch_ns: u64,
    left_out_ns: &'static AtomicU64,
}

/// The stalls of a clock that is not a run's: none.
static NOTHING: AtomicU64 = AtomicU64::new(0);

impl Clock {
    /// A clock whose epoch is now, and which leaves nothing out.
    pub fn start() -> Clock {
        Clock {
            epoch_ns: monotonic_ns(),
            left_out_ns: &NOTHING,
        }
    }

    /// The clock of a run. Its epoch is `delay` from now; [`now`](Self::now) is zero until then.
    /// The few bytes that its copies share are never freed.
    pub fn of_run(delay: Duration) -> Clock {
        Clock {
            epoch_ns: monotonic_ns() + delay.as_nanos(),
            left_out_ns: Box::leak(Box::default()),
        }
    }

    /// Sets this clock and all copies back by a stall of the machine.
    pub(crate) fn leave_out(&self, stall: Duration) {
        self.left_out_ns
            .fetch_add(stall.as_nanos(), Ordering::Relaxed);
    }

    fn left_out_ns(&self) -> u64 {
        self.left_out_ns.load(Ordering::Relaxed)
    }

    /// The time since the epoch, without the stalls that were left out.
    #[inline]
    pub fn now(&self) -> Time {
        let left_out = self.epoch_ns + self.left_out_ns();
        Time::from_nanos(monotonic_ns().saturating_sub(left_out))
    }

    /// Waits for the epoch.
    pub fn wait_for_epoch(&self) {
        let (seconds, ns) = (self.epoch_ns / 1_000_000_000, self.epoch_ns % 1_000_000_000);
        let epoch = TimeSpec::new(seconds as i64, ns as i64);
        let flags = ClockNanosleepFlags::TIMER_ABSTIME;
        while clock_nanosleep(ClockId::CLOCK_MONOTONIC, flags, &epoch) == Err(Errno::EINTR) {}
    }

    /// The time `at` on `CLOCK_MONOTONIC`, in ns.
    pub(crate) fn monotonic_ns(&self, at: Time) -> u64 {
        (self.epoch_ns + self.left_out_ns()).saturating_add(at.as_nanos())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_a_runs_clock_leave_out_the_same() {
        let run = Clock::of_run(Duration::ZERO);
        let (copy, other) = (run, Clock::of_run(Duration::ZERO));
        let at = Time::from_millis(7);
        let (due, others_due) = (copy.monotonic_ns(at), other.monotonic_ns(at));
        run.leave_out(Duration::from_millis(3_600_000));
        assert_eq!(copy.now(), Time::ZERO, "it began less than an hour ago");
        assert_eq!(copy.monotonic_ns(at), due + 3_600_000_000_000);
        assert_eq!(other.monotonic_ns(at), others_due, "another run's clock");
    }
}
