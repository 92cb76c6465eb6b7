//! When the emulator looks at the clock, and what late looks show.

use headway_cc::{Duration, Time};

/// Times the emulator's looks at the clock, and finds stalls of the machine by late looks.
///
/// A virtual machine may stand still for some milliseconds. Without a correction, everything due
/// meanwhile would be written at once, hosts would answer at once, and their burst would overflow a
/// queue that the network itself leaves half empty. The clock of a run therefore leaves stalls out:
/// in its time nothing was due meanwhile. For hosts, packets under way take longer by the stall,
/// and no packet ever takes less time than the network gives it.
#[derive(Debug, Default)]
pub struct Looks {
    /// Whether late looks count as stalls; otherwise nothing does.
    pub leave_out_stalls: bool,
    expected: Time,
}

impl Looks {
    /// Shorter stalls cause bursts of few packets. At work, looks are closer together than this.
    const SHORTEST: Duration = Duration::from_millis(1);
    /// After a longer pause the machine has slept, and connections have timed out.
    const LONGEST: Duration = Duration::from_millis(200);

    /// The next look is expected by `at`.
    pub fn expect(&mut self, at: Time) {
        self.expected = at;
    }

    /// The stall that a look at `at` shows. The next look is expected soon.
    pub fn stall(&mut self, at: Time) -> Option<Duration> {
        let stall = at.since(self.expected);
        let is_stall = self.leave_out_stalls && stall > Self::SHORTEST && stall < Self::LONGEST;
        // The clock now shows the time from before the stall.
        self.expected = if is_stall { self.expected } else { at };
        is_stall.then_some(stall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn looks(leave_out_stalls: bool) -> Looks {
        Looks {
            leave_out_stalls,
            expected: ms(100),
        }
    }

    #[test]
    fn a_late_look_shows_a_stall() {
        let mut looks = looks(true);
        assert_eq!(looks.stall(ms(90)), None, "a packet came before");
        looks.expect(ms(100));
        assert_eq!(looks.stall(ms(109)), Some(Duration::from_millis(9)));
        // At work; 9 ms were left out.
        assert_eq!(looks.stall(ms(101)), None);
        assert_eq!(looks.stall(ms(104)), Some(Duration::from_millis(3)));
    }

    #[test]
    fn short_delays_and_long_sleeps_are_not_stalls() {
        let mut strict = looks(true);
        assert_eq!(strict.stall(ms(101)), None);
        assert_eq!(strict.stall(ms(301)), None);
        assert_eq!(looks(false).stall(ms(109)), None);
    }
}
