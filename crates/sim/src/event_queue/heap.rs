//! A binary heap of times, indexed so that a slot's time can change in place.

use headway_cc::Time;

#[derive(Debug)]
pub(super) struct Heap {
    heap: Vec<Event>,
    /// For each slot, its position in `heap`.
    position: Vec<u32>,
}

/// The time in ns in the upper bits, the slot in the lower ones: one comparison orders both.
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

impl Heap {
    pub(super) fn new(slots: usize) -> Heap {
        assert!(slots > 0);
        let count = u32::try_from(slots).expect("fewer than 2^32 parts");
        Heap {
            heap: (0..slots)
                .map(|slot| Event::new(Time::NEVER, slot))
                .collect(),
            position: (0..count).collect(),
        }
    }

    /// The smallest time and its slot; among equal times, the lowest slot.
    #[inline]
    pub(super) fn first(&self) -> (Time, usize) {
        let first = self.heap[0];
        (first.time(), first.slot())
    }

    #[inline]
    pub(super) fn set(&mut self, slot: usize, time: Time) {
        let at = self.position[slot] as usize;
        let event = Event::new(time, slot);
        if event < self.heap[at] {
            self.sift_up(at, event);
        } else if event > self.heap[at] {
            self.sift_down(at, event);
        }
    }

    #[inline]
    pub(super) fn set_earlier(&mut self, slot: usize, time: Time) {
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
