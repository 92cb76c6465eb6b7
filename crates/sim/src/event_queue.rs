//! The event queue: every part of the simulation has one slot with the time of its next event.

use headway_cc::Time;

/// A binary heap over slots, indexed so that a slot's time can change in place.
///
/// Its size is the number of parts (links, flows), not of packets. Of two events at one time the
/// lower slot's comes first, so the order never depends on history.
#[derive(Debug)]
pub struct EventQueue {
    heap: Vec<Event>,
    /// Where each slot stands in `heap`.
    position: Vec<u32>,
}

/// Time in ns above, slot below: one comparison orders both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event(u128);

impl Event {
    #[inline]
    fn new(time: Time, slot: usize) -> Event {
        Event(u128::from(time.as_nanos()) << 32 | slot as u128)
    }

    #[inline]
    fn time(self) -> Time {
        Time::from_nanos((self.0 >> 32) as u64)
    }

    #[inline]
    fn slot(self) -> usize {
        self.0 as u32 as usize
    }
}

impl EventQueue {
    /// `slots` slots without events.
    ///
    /// # Panics
    /// With no slot, or 2^32 of them.
    pub fn new(slots: usize) -> EventQueue {
        assert!(slots > 0);
        let count = u32::try_from(slots).expect("fewer than 2^32 parts");
        EventQueue {
            heap: (0..slots)
                .map(|slot| Event::new(Time::NEVER, slot))
                .collect(),
            position: (0..count).collect(),
        }
    }

    /// The earliest event and its slot; [`Time::NEVER`] if there is none.
    #[inline]
    pub fn peek(&self) -> (Time, usize) {
        let first = self.heap[0];
        (first.time(), first.slot())
    }

    /// When the slot's event is.
    pub fn time(&self, slot: usize) -> Time {
        self.heap[self.position[slot] as usize].time()
    }

    /// Moves the slot's event to `time`.
    #[inline]
    pub fn set(&mut self, slot: usize, time: Time) {
        let at = self.position[slot] as usize;
        let event = Event::new(time, slot);
        if event < self.heap[at] {
            self.sift_up(at, event);
        } else if event > self.heap[at] {
            self.sift_down(at, event);
        }
    }

    /// Moves the slot's event to `time` if that is earlier.
    #[inline]
    pub fn set_earlier(&mut self, slot: usize, time: Time) {
        let at = self.position[slot] as usize;
        let event = Event::new(time, slot);
        if event < self.heap[at] {
            self.sift_up(at, event);
        }
    }

    #[inline]
    fn place(&mut self, at: usize, event: Event) {
        self.heap[at] = event;
        self.position[event.slot()] = at as u32;
    }

    fn sift_up(&mut self, mut at: usize, event: Event) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.heap[parent] < event {
                break;
            }
            self.place(at, self.heap[parent]);
            at = parent;
        }
        self.place(at, event);
    }

    fn sift_down(&mut self, mut at: usize, event: Event) {
        let len = self.heap.len();
        loop {
            let mut child = 2 * at + 1;
            if child >= len {
                break;
            }
            if child + 1 < len && self.heap[child + 1] < self.heap[child] {
                child += 1;
            }
            if event < self.heap[child] {
                break;
            }
            self.place(at, self.heap[child]);
            at = child;
        }
        self.place(at, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_cc::Stream;

    #[test]
    fn agrees_with_a_plain_search() {
        let mut stream = Stream::new(3, "events");
        let mut queue = EventQueue::new(37);
        let mut plain = vec![u64::MAX; 37];
        for _ in 0..20_000 {
            let slot = stream.below(37) as usize;
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
            assert_eq!((t.as_nanos(), s), least);
            assert_eq!(queue.time(slot).as_nanos(), plain[slot]);
        }
    }
}
