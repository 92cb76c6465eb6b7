//! The event queue: every part of the simulation has one slot with the time of its next event.

mod heap;
mod tournament;

use headway_cc::Time;
use heap::Heap;
use tournament::Tournament;

/// Slots with times. Its size is the number of parts (links, flows), not of packets.
///
/// The first slots are busy: they move with every packet, and are kept in a tournament. The others
/// mostly wait for timers that never fire, and are kept in a heap. Of two events at one time, the
/// one in the lower slot comes first, so the order does not depend on history.
#[derive(Debug)]
pub struct EventQueue {
    busy: Tournament,
    others: Heap,
    first_other: usize,
}

impl EventQueue {
    /// `slots` slots without events, the first `busy` of which move with every packet.
    ///
    /// # Panics
    /// Unless there are busy slots and others, fewer than 2^32 in total.
    pub fn new(busy: usize, slots: usize) -> EventQueue {
        EventQueue {
            busy: Tournament::new(busy),
            others: Heap::new(slots - busy),
            first_other: busy,
        }
    }

    /// The earliest event and its slot; [`Time::NEVER`] if there is none.
    #[inline]
    pub fn peek(&self) -> (Time, usize) {
        let (busy, slot) = self.busy.first();
        let (other, other_slot) = self.others.first();
        if busy <= other {
            (busy, slot)
        } else {
            (other, self.first_other + other_slot)
        }
    }

    /// Moves the slot's event to `time`.
    #[inline]
    pub fn set(&mut self, slot: usize, time: Time) {
        match slot.checked_sub(self.first_other) {
            None => self.busy.set(slot, time),
            Some(slot) => self.others.set(slot, time),
        }
    }

    /// Moves the slot's event to `time` if that is earlier.
    #[inline]
    pub fn set_earlier(&mut self, slot: usize, time: Time) {
        match slot.checked_sub(self.first_other) {
            None if time < self.busy.get(slot) => self.busy.set(slot, time),
            None => {}
            Some(slot) => self.others.set_earlier(slot, time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_cc::Stream;

    #[test]
    fn event_queue_agrees_with_a_plain_search() {
        for (busy, slots) in [(1, 2), (2, 9), (8, 20), (9, 12), (70, 100)] {
            let mut stream = Stream::new(3, "events");
            let mut queue = EventQueue::new(busy, slots);
            let mut plain = vec![u64::MAX; slots];
            for _ in 0..20_000 {
                let slot = stream.below(slots as u64) as usize;
                let time = if stream.chance(0.1) {
                    u64::MAX
                } else {
                    stream.below(50)
                };
                if stream.chance(0.5) {
                    queue.set(slot, Time::from_nanos(time));
                    plain[slot] = time;
                } else {
                    queue.set_earlier(slot, Time::from_nanos(time));
                    plain[slot] = plain[slot].min(time);
                }
                let least = plain
                    .iter()
                    .enumerate()
                    .map(|(s, &t)| (t, s))
                    .min()
                    .unwrap();
                let (t, s) = queue.peek();
                assert_eq!(t.as_nanos(), least.0);
                assert!(t == Time::NEVER || s == least.1);
            }
        }
    }
}
