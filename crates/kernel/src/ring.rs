//! A ring buffer as BPF has it: a message that does not fit is dropped, and counted.

use std::collections::VecDeque;

/// Messages on their way to the agent. As in `BPF_MAP_TYPE_RINGBUF` each takes 8 bytes beyond its own, in steps
/// of 8; one that does not fit is dropped.
#[derive(Debug)]
pub struct Ring {
    capacity: usize,
    used: usize,
    dropped: u64,
    messages: VecDeque<Box<[u8]>>,
}

impl Ring {
    /// Of so many bytes.
    pub fn new(capacity: usize) -> Ring {
        Ring {
            capacity,
            used: 0,
            dropped: 0,
            messages: VecDeque::new(),
        }
    }

    fn room_of(message: &[u8]) -> usize {
        (8 + message.len()).next_multiple_of(8)
    }

    /// Puts a message in, or drops it.
    pub fn push(&mut self, message: &[u8]) {
        let room = Ring::room_of(message);
        if self.used + room > self.capacity {
            self.dropped += 1;
            return;
        }
        self.used += room;
        self.messages.push_back(message.into());
    }

    /// Takes the oldest.
    pub fn pop(&mut self) -> Option<Box<[u8]>> {
        let message = self.messages.pop_front()?;
        self.used -= Ring::room_of(&message);
        Some(message)
    }

    /// How many were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}
