//! When flows' clocks want to decide.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use headway_cc::Time;

use super::Key;

/// A time for each flow that has one, the earliest first.
#[derive(Debug, Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(Time, Key)>>,
    /// What holds of each; an entry of the heap that says otherwise is old.
    set: HashMap<Key, Time>,
}

impl Timers {
    /// A flow's next time.
    pub fn set(&mut self, key: Key, due: Time) {
        if self.set.insert(key, due) != Some(due) {
            self.heap.push(Reverse((due, key)));
        }
    }

    /// A flow whose time has come; it has none then.
    pub fn due(&mut self, now: Time) -> Option<Key> {
        while let Some(&Reverse((due, key))) = self.heap.peek() {
            let holds = self.set.get(&key) == Some(&due);
            if holds && due > now {
                return None;
            }
            self.heap.pop();
            if holds {
                self.set.remove(&key);
                return Some(key);
            }
        }
        None
    }

    /// The earliest time, or never.
    pub fn next(&self) -> Time {
        self.heap
            .peek()
            .map_or(Time::NEVER, |Reverse((due, _))| *due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flow_comes_once_at_its_newest_time() {
        let at = Time::from_nanos;
        let mut timers = Timers::default();
        timers.set((0, 1), at(10));
        timers.set((0, 2), at(20));
        timers.set((0, 1), at(30));
        assert_eq!(timers.due(at(9)), None);
        assert_eq!(timers.due(at(25)), Some((0, 2)));
        assert_eq!(timers.due(at(25)), None);
        assert_eq!(timers.next(), at(30));
        assert_eq!(timers.due(at(30)), Some((0, 1)));
        assert_eq!((timers.due(at(99)), timers.next()), (None, Time::NEVER));
    }
}
