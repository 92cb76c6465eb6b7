//! First in, first out, with a limit or without.

use std::collections::VecDeque;

use headway_cc::{Bytes, Time};

use super::Queue;
use crate::Packet;

/// How much a queue holds.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    packets: usize,
    bytes: u64,
}

impl Limits {
    /// Holds everything.
    pub const NONE: Limits = Limits {
        packets: usize::MAX,
        bytes: u64::MAX,
    };

    /// At most so many packets and bytes; `None` for no limit.
    pub fn new(packets: Option<u64>, bytes: Option<Bytes>) -> Limits {
        Limits {
            packets: packets.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX)),
            bytes: bytes.map_or(u64::MAX, Bytes::get),
        }
    }

    /// May so much wait?
    #[inline]
    pub const fn allow(&self, packets: usize, bytes: u64) -> bool {
        packets <= self.packets && bytes <= self.bytes
    }
}

/// Drops an arrival that would exceed either limit (mahimahi's `droptail`, or `infinite`).
#[derive(Debug)]
pub struct DropTail {
    packets: VecDeque<Packet>,
    bytes: u64,
    limits: Limits,
    /// What each packet counts beyond its size.
    overhead: u64,
}

impl DropTail {
    /// An empty queue.
    pub fn new(limits: Limits) -> DropTail {
        DropTail {
            packets: VecDeque::new(),
            bytes: 0,
            limits,
            overhead: 0,
        }
    }

    /// Every packet counts so many bytes more: mahimahi's queues count the header of its tunnel.
    pub fn with_overhead(self, overhead: u32) -> DropTail {
        DropTail {
            overhead: u64::from(overhead),
            ..self
        }
    }
}

impl Queue for DropTail {
    fn enqueue(&mut self, _: Time, packet: Packet, dropped: &mut Vec<Packet>) {
        let bytes = self.bytes + u64::from(packet.size) + self.overhead;
        if self.limits.allow(self.packets.len() + 1, bytes) {
            self.bytes = bytes;
            self.packets.push_back(packet);
        } else {
            dropped.push(packet);
        }
    }

    fn dequeue(&mut self, _: Time, _: &mut Vec<Packet>) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.size) + self.overhead;
        Some(packet)
    }

    fn len(&self) -> usize {
        self.packets.len()
    }

    fn bytes(&self) -> Bytes {
        Bytes::new(self.bytes)
    }
}
