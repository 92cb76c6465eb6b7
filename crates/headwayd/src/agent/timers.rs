//! The times at which flows' clocks decide.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headway_cc::Time;

/// Times and the slots of their flows, the earliest first. Times are not removed, so a flow whose
/// time comes may have a newer one.
#[derive(Debug, Default)]
pub struct Timers(BinaryHeap<Reverse<(Time, u16)>>);

impl Timers {
    /// Adds a flow's next time.
    pub fn set(&mut self, slot: u16, due: Time) {
        self.0.push(Reverse((due, slot)));
    }

    /// Takes a time that has come, with the slot of its flow.
    pub fn due(&mut self, now: Time) -> Option<(Time, u16)> {
        if self.next() > now {
            return None;
        }
        self.0.pop().map(|Reverse(timer)| timer)
    }

    /// The earliest time, or never.
    pub fn next(&self) -> Time {
        self.0.peek().map_or(Time::NEVER, |Reverse((due, _))| *due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_in_their_order() {
        let at = Time::from_nanos;
        let mut timers = Timers::default();
        assert_eq!((timers.due(at(99)), timers.next()), (None, Time::NEVER));
        timers.set(1, at(30));
        timers.set(2, at(20));
        assert_eq!((timers.due(at(19)), timers.next()), (None, at(20)));
        assert_eq!(timers.due(at(99)), Some((at(20), 2)));
        assert_eq!(timers.due(at(99)), Some((at(30), 1)));
        assert_eq!(timers.due(at(99)), None);
    }
}
