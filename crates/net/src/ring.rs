//! A queue in a ring whose size is a power of two.
//!
//! Every packet passes several of these: a mask finds a slot where `VecDeque` compares and
//! branches.

/// A queue of plain values, numbered from 0 in order of arrival.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    /// The slots: none, or a power of two.
    slots: Vec<T>,
    /// The number of the first value, and of the next one to be added.
    head: u64,
    tail: u64,
}

impl<T: Copy> Ring<T> {
    /// An empty queue.
    pub const fn new() -> Ring<T> {
        Ring {
            slots: Vec::new(),
            head: 0,
            tail: 0,
        }
    }

    /// The number of values.
    #[inline]
    pub const fn len(&self) -> usize {
        (self.tail - self.head) as usize
    }

    /// Is the ring empty?
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// The number of the first value, which is how many were taken.
    #[inline]
    pub const fn head(&self) -> u64 {
        self.head
    }

    /// The number of the next value, which is how many were added.
    #[inline]
    pub const fn tail(&self) -> u64 {
        self.tail
    }

    #[inline]
    fn slot(&self, number: u64) -> usize {
        number as usize & self.slots.len().wrapping_sub(1)
    }

    /// Adds a value at the end, and returns it in place.
    #[inline(always)]
    pub fn push(&mut self, value: T) -> &mut T {
        if self.len() == self.slots.len() {
            self.grow(value);
        }
        let slot = self.slot(self.tail);
        self.tail += 1;
        let place = &mut self.slots[slot];
        *place = value;
        place
    }

    #[cold]
    fn grow(&mut self, filler: T) {
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![filler; (2 * old.len()).max(16)];
        for number in self.head..self.tail {
            let slot = self.slot(number);
            self.slots[slot] = old[number as usize & (old.len() - 1)];
        }
    }

    /// The first value.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        if self.is_empty() {
            None
        } else {
            self.slots.get(self.slot(self.head))
        }
    }

    /// Takes the first value.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let value = *self.front()?;
        self.head += 1;
        Some(value)
    }

    /// Drops the first value, if there is one.
    #[inline]
    pub fn skip(&mut self) {
        self.head += u64::from(!self.is_empty());
    }

    /// The value with this number, if it is in the ring.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&T> {
        if number < self.head || number >= self.tail {
            return None;
        }
        self.slots.get(self.slot(number))
    }

    /// The value with this number, if it is in the ring.
    #[inline]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        if number < self.head || number >= self.tail {
            return None;
        }
        let slot = self.slot(number);
        self.slots.get_mut(slot)
    }

    /// The last `n` values in order.
    pub fn last_mut(&mut self, n: usize) -> impl Iterator<Item = &mut T> {
        let len = self.slots.len();
        let first = self.slot(self.tail - n as u64);
        let (wrapped, straight) = self.slots.split_at_mut(first.min(len));
        straight.iter_mut().chain(wrapped).take(n)
    }

    /// The values in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (self.head..self.tail).filter_map(|n| self.get(n))
    }
}

impl<T: Copy> Default for Ring<T> {
    fn default() -> Ring<T> {
        Ring::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn ring_agrees_with_a_deque() {
        let mut stream = headway_cc::Stream::new(1, "ring");
        let (mut ring, mut deque) = (Ring::new(), VecDeque::new());
        for i in 0..50_000u64 {
            // The ring grows and shrinks in long waves.
            if stream.chance(if i / 5_000 % 2 == 0 { 0.6 } else { 0.4 }) {
                ring.push(i);
                deque.push_back(i);
            } else {
                assert_eq!(ring.pop(), deque.pop_front());
            }
            assert_eq!((ring.len(), ring.front()), (deque.len(), deque.front()));
            let at = stream.below(ring.len() as u64 + 2);
            assert_eq!(ring.get(ring.head() + at), deque.get(at as usize));
        }
        assert!(ring.iter().eq(deque.iter()));
        for n in 0..=ring.len() {
            let last: Vec<u64> = ring.last_mut(n).map(|v| *v).collect();
            assert!(last.iter().eq(deque.iter().skip(deque.len() - n)));
        }
    }
}
