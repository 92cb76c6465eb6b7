//! A ring buffer like BPF's: it drops and counts messages that do not fit.

use std::collections::VecDeque;

/// Messages to the agent. As in `BPF_MAP_TYPE_RINGBUF`, each takes 8 bytes more than its own,
/// rounded up to 8 bytes, and a message that does not fit is dropped.
#[derive(Debug)]
pub struct Ring {
    capacity: usize,
    used: usize,
    dropped: u64,
    messages: VecDeque<Box<[u8]>>,
}

impl Ring {
    /// A ring of this capacity in bytes.
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

    /// Adds a message, or drops it. Was there room?
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

    /// Is less than half of it free? That is for all but reports without a request.
    pub fn is_half_full(&self) -> bool {
        self.used > self.capacity / 2
    }

    /// Is there room for a message of this size?
    fn has_room(&self, bytes: usize) -> bool {
        self.used + Ring::room_of(bytes) <= self.capacity
    }

    /// Takes the oldest message.
    pub fn pop(&mut self) -> Option<Box<[u8]>> {
        let message = self.messages.pop_front()?;
        self.used -= Ring::room_of(message.len());
        Some(message)
    }

    /// The number of messages that were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}
