//! A ring buffer as BPF has it: a message that does not fit is dropped, and counted.

use std::collections::VecDeque;

/// Messages on their way to the agent. As in `BPF_MAP_TYPE_RINGBUF` each takes 8 bytes beyond its
/// own, in steps of 8; one that does not fit is dropped.
#[derive(Debug)]
pub struct Ring {
    capacity: usize,
    used: usize,
    dropped: u64,
    messages: VecDeque<Box<[u8]>>,
}

impl Ring {
    /// Of this capacity in bytes.
    pub fn new(capacity: usize) -> Ring {
        Ring {
            capacity,
            used: 0,
            dropped: 0,
            messages: VecDeque::new(),
        }
    }

    fn room_of(bytes: usize) -> usize {
        (8 + bytes).next_multiple_of(8)
    }

    /// Puts a message in, or drops it. Was there room?
    pub fn push(&mut self, message: &[u8]) -> bool {
        let has_room = self.has_room(message.len());
        if has_room {
            self.used += Ring::room_of(message.len());
            self.messages.push_back(message.into());
        } else {
            self.dropped += 1;
        }
        has_room
    }

    /// Is at most half of it free? Only requests, and flows that begin or end, may take that.
    pub fn is_half_full(&self) -> bool {
        self.used > self.capacity / 2
    }

    /// Counts a message that is held back.
    pub fn hold_back(&mut self) {
        self.dropped += 1;
    }

    /// Is there room for a message of this size?
    fn has_room(&self, bytes: usize) -> bool {
        self.used + Ring::room_of(bytes) <= self.capacity
    }

    /// Takes the oldest.
    pub fn pop(&mut self) -> Option<Box<[u8]>> {
        let message = self.messages.pop_front()?;
        self.used -= Ring::room_of(message.len());
        Some(message)
    }

    /// The number of messages that were dropped or held back.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}
