//! The event queue: every part of the simulation has one slot with the time of its next event.

use headway_cc::Time;

/// A binary heap over slots, indexed so that a slot's time can change in place.
///
/// Its size is the number of parts (links, flows), not of packets. Of two events at one time the
/// lower slot's comes first, so the order never depends on history.
#[derive(Debug)]
pub struct EventQueue {
    /// (time in ns, slot), a heap.
    heap: Vec<(u64, u32)>,
    /// Where each slot stands in `heap`.
    position: Vec<u32>,
}

impl EventQueue {
    /// `slots` slots without events.
    pub fn new(slots: usize) -> EventQueue {
        let slots = u32::try_from(slots).expect("fewer than 2^32 parts");
        EventQueue {
            heap: (0..slots).map(|s| (u64::MAX, s)).collect(),
            position: (0..slots).collect(),
        }
    }

    /// The earliest event; [`Time::NEVER`] if there is none.
    #[inline]
    pub fn peek(&self) -> (Time, usize) {
        match self.heap.first() {
            Some(&(t, slot)) => (Time::from_nanos(t), slot as usize),
            None => (Time::NEVER, 0),
        }
    }

    /// When the slot's event is.
    #[inline]
    pub fn time(&self, slot: usize) -> Time {
        Time::from_nanos(self.heap[self.position[slot] as usize].0)
    }

    /// Moves the slot's event to `time`.
    #[inline]
    pub fn set(&mut self, slot: usize, time: Time) {
        let at = self.position[slot] as usize;
        let (old, new) = (self.heap[at].0, time.as_nanos());
        if new < old {
            self.sift_up(at, (new, slot as u32));
        } else if new > old {
            self.sift_down(at, (new, slot as u32));
        }
    }

    /// Moves the slot's event to `time` if that is earlier.
    #[inline]
    pub fn set_earlier(&mut self, slot: usize, time: Time) {
        let at = self.position[slot] as usize;
        if time.as_nanos() < self.heap[at].0 {
            self.sift_up(at, (time.as_nanos(), slot as u32));
        }
    }

    #[inline]
    fn place(&mut self, at: usize, event: (u64, u32)) {
        self.heap[at] = event;
        self.position[event.1 as usize] = at as u32;
    }

    #[inline]
    fn sift_up(&mut self, mut at: usize, event: (u64, u32)) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.heap[parent] <= event {
                break;
            }
            self.place(at, self.heap[parent]);
            at = parent;
        }
        self.place(at, event);
    }

    #[inline]
    fn sift_down(&mut self, mut at: usize, event: (u64, u32)) {
        loop {
            let left = 2 * at + 1;
            let Some(&first) = self.heap.get(left) else {
                break;
            };
            let (child, least) = match self.heap.get(left + 1) {
                Some(&second) if second < first => (left + 1, second),
                _ => (left, first),
            };
            if event <= least {
                break;
            }
            self.place(at, least);
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
