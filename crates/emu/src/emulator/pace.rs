//! How the emulator's own time goes after a stall.

use headway_cc::{Duration, Time};

/// The emulator's own time. It is that of the clock, but for a while after a stall.
///
/// A virtual machine may stand still for some milliseconds. What was due in this time would be
/// written at once afterwards, hosts would answer at once, and their burst would overflow a queue
/// that the network itself leaves half empty. So own time goes on where it was when the stall
/// began, [`SPEED`](Self::SPEED) times as fast as the clock, until it has caught up. Hosts see
/// late packets in their order and at their distances, divided by that.
#[derive(Debug, Default)]
pub struct Pace {
    /// Without this, own time is the clock's.
    pub makes_up: bool,
    /// The end of the last stall by the clock, and own time then.
    resumed: (Time, Time),
}

impl Pace {
    const SPEED: u64 = 4;
    /// Bursts of less time than this hold few packets.
    const SHORTEST: Duration = Duration::from_millis(1);
    /// The machine has slept: connections have timed out, and nothing makes up for that.
    const LONGEST: Duration = Duration::from_millis(200);

    /// Own time when the clock shows `at`, which is not before the last stall's end.
    pub fn own_time(&self, at: Time) -> Time {
        let (resumed, own) = self.resumed;
        at.min(own + at.since(resumed) * Self::SPEED)
    }

    /// What the clock will show at this own time.
    pub fn clock_at(&self, own: Time) -> Time {
        let (resumed, then) = self.resumed;
        own.max(resumed + own.since(then) / Self::SPEED)
    }

    /// The machine came back at `at` instead of `planned`. Returns whether that is made up for.
    pub fn resume(&mut self, planned: Time, at: Time) -> bool {
        let own = self.own_time(planned);
        let is_stall = at.since(planned) > Self::SHORTEST && at.since(own) < Self::LONGEST;
        if self.makes_up && is_stall {
            self.resumed = (at, own);
        }
        self.makes_up && is_stall
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: f64) -> Time {
        Time::from_nanos((ms * 1e6) as u64)
    }

    #[test]
    fn own_time_is_the_clocks_until_a_stall_and_catches_up_after_it() {
        let mut pace = Pace {
            makes_up: true,
            ..Pace::default()
        };
        assert_eq!(pace.own_time(ms(70.0)), ms(70.0));
        assert_eq!(pace.clock_at(ms(70.0)), ms(70.0));
        assert!(pace.resume(ms(100.0), ms(109.0)));
        // 9 ms late: it takes 3 ms in which own time gains 12.
        for (clock, own) in [
            (109.0, 100.0),
            (110.0, 104.0),
            (112.0, 112.0),
            (120.0, 120.0),
        ] {
            assert_eq!(pace.own_time(ms(clock)), ms(own));
            assert_eq!(pace.clock_at(ms(own)), ms(clock));
        }
        // Another one before it has caught up.
        assert!(pace.resume(ms(110.0), ms(112.0)));
        assert_eq!(pace.own_time(ms(112.0)), ms(104.0));
    }

    #[test]
    fn short_stalls_and_long_sleeps_are_not_made_up_for() {
        let mut pace = Pace {
            makes_up: true,
            ..Pace::default()
        };
        assert!(!pace.resume(ms(100.0), ms(101.0)));
        assert!(!pace.resume(ms(100.0), ms(301.0)));
        assert_eq!(pace.own_time(ms(301.0)), ms(301.0));
        let mut pace = Pace::default();
        assert!(!pace.resume(ms(100.0), ms(109.0)));
        assert_eq!(pace.own_time(ms(109.0)), ms(109.0));
    }
}
