//! When the emulator looks at the clock, and what late looks show.

use headway_cc::{Duration, Time};

/// When the emulator looks at the clock next, and what of a late look was a stall of the machine.
///
/// A virtual machine may stand still for some milliseconds. All that was due meanwhile would be
/// written at once, hosts would answer at once, and their burst would overflow a queue that the
/// network itself leaves half empty. So the clock of a run leaves stalls out: in its time nothing
/// was due meanwhile. Hosts see that what was on its way takes longer by the stall, and no packet
/// ever takes less time than the network's.
#[derive(Debug, Default)]
pub struct Looks {
    /// Without this, nothing is a stall.
    pub leave_out_stalls: bool,
    expected: Time,
}

impl Looks {
    /// Bursts of less time than this hold few packets. At work, looks are closer than this.
    const SHORTEST: Duration = Duration::from_millis(1);
    /// The machine has slept: connections have timed out.
    const LONGEST: Duration = Duration::from_millis(200);

    /// The next look is expected when the clock shows `at`, or before.
    pub fn expect(&mut self, at: Time) {
        self.expected = at;
    }

    /// The stall that a look at `at` shows. The next look is expected soon.
    pub fn stall(&mut self, at: Time) -> Option<Duration> {
        let stall = at.since(self.expected);
        let is_stall = self.leave_out_stalls && stall > Self::SHORTEST && stall < Self::LONGEST;
        // The clock shows the time from before the stall again.
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
        // At work, and 9 ms were left out.
        assert_eq!(looks.stall(ms(101)), None);
        assert_eq!(looks.stall(ms(104)), Some(Duration::from_millis(3)));
    }

    #[test]
    fn delays_of_a_millisecond_and_long_sleeps_are_no_stalls() {
        let mut strict = looks(true);
        assert_eq!(strict.stall(ms(101)), None);
        assert_eq!(strict.stall(ms(301)), None);
        assert_eq!(looks(false).stall(ms(109)), None);
    }
}
