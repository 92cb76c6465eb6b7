//! First in, first out, with a limit or without.

use std::collections::VecDeque;

use headway_cc::{Bytes, Time};

use super::Queue;
use crate::Packet;

/// Drops an arrival that would exceed either limit (mahimahi's `droptail`, or `infinite`).
#[derive(Debug)]
pub struct DropTail {
    packets: VecDeque<Packet>,
    bytes: u64,
    max_packets: usize,
    max_bytes: u64,
}

impl DropTail {
    /// A queue of at most so many packets and bytes; `None` for no limit.
    pub fn new(packets: Option<u64>, bytes: Option<Bytes>) -> DropTail {
        DropTail {
            packets: VecDeque::new(),
            bytes: 0,
            max_packets: packets.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX)),
            max_bytes: bytes.map_or(u64::MAX, Bytes::get),
        }
    }

    /// A queue without limits.
    pub fn infinite() -> DropTail {
        DropTail::new(None, None)
    }
}

impl Queue for DropTail {
    #[inline]
    fn enqueue(&mut self, _: Time, packet: Packet, dropped: &mut Vec<Packet>) {
        let bytes = self.bytes + u64::from(packet.size);
        if self.packets.len() >= self.max_packets || bytes > self.max_bytes {
            dropped.push(packet);
        } else {
            self.bytes = bytes;
            self.packets.push_back(packet);
        }
    }

    #[inline]
    fn dequeue(&mut self, _: Time, _: &mut Vec<Packet>) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }

    fn len(&self) -> usize {
        self.packets.len()
    }

    fn bytes(&self) -> Bytes {
        Bytes::new(self.bytes)
    }
}
