//! The emulator's own time, which stands still while the machine does.

use headway_cc::{Duration, Time};

/// The emulator's own time: that of the clock, without the stalls of the machine.
///
/// A virtual machine may stand still for some milliseconds. By the clock, all that was due
/// meanwhile would be written at once, hosts would answer at once, and their burst would overflow a
/// queue that the network itself leaves half empty. In own time nothing was due meanwhile. Hosts
/// see that what was on its way takes longer by the stall, and no packet ever takes less time than
/// the network's.
#[derive(Debug, Default)]
pub struct OwnTime {
    /// Without this, own time is the clock's.
    pub leaves_out_stalls: bool,
    left_out: Duration,
}

impl OwnTime {
    /// Bursts of less time than this hold few packets.
    const SHORTEST: Duration = Duration::from_millis(1);
    /// The machine has slept: connections have timed out.
    const LONGEST: Duration = Duration::from_millis(200);

    /// Own time when the clock shows `at`.
    pub fn at(&self, at: Time) -> Time {
        at.saturating_sub(self.left_out)
    }

    /// What the clock shows at this own time.
    pub fn clock_at(&self, own: Time) -> Time {
        own + self.left_out
    }

    /// All that it has left out.
    pub fn left_out(&self) -> Duration {
        self.left_out
    }

    /// The machine came back at `at` instead of `planned`. Returns whether own time leaves that
    /// out.
    pub fn resume(&mut self, planned: Time, at: Time) -> bool {
        let stall = at.since(planned);
        let leaves_out = self.leaves_out_stalls && stall > Self::SHORTEST && stall < Self::LONGEST;
        if leaves_out {
            self.left_out += stall;
        }
        leaves_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn own_time_stands_still_during_stalls() {
        let mut time = OwnTime {
            leaves_out_stalls: true,
            ..OwnTime::default()
        };
        assert_eq!((time.at(ms(70)), time.clock_at(ms(70))), (ms(70), ms(70)));
        assert!(time.resume(ms(100), ms(109)));
        assert_eq!(
            (time.at(ms(109)), time.clock_at(ms(100))),
            (ms(100), ms(109))
        );
        assert!(time.resume(ms(120), ms(123)));
        assert_eq!(
            (time.at(ms(130)), time.clock_at(ms(118))),
            (ms(118), ms(130))
        );
        assert_eq!(time.left_out(), Duration::from_millis(12));
    }

    #[test]
    fn short_stalls_and_long_sleeps_count() {
        let mut time = OwnTime {
            leaves_out_stalls: true,
            ..OwnTime::default()
        };
        assert!(!time.resume(ms(100), ms(101)));
        assert!(!time.resume(ms(100), ms(300)));
        assert_eq!(time.at(ms(300)), ms(300));
        let mut time = OwnTime::default();
        assert!(!time.resume(ms(100), ms(109)));
        assert_eq!(time.at(ms(109)), ms(109));
    }
}
