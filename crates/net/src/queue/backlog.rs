//! The packets that wait in a queue, and the limits on them.

use std::collections::VecDeque;

use headway_cc::Bytes;

use crate::Packet;

/// The limits of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    packets: usize,
    bytes: u64,
}

impl Limits {
    /// No limits.
    pub const NONE: Limits = Limits {
        packets: usize::MAX,
        bytes: u64::MAX,
    };

    /// Limits on packets and on bytes; `None` for no limit.
    pub fn new(packets: Option<u64>, bytes: Option<Bytes>) -> Limits {
        Limits {
            packets: packets.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX)),
            bytes: bytes.map_or(u64::MAX, Bytes::get),
        }
    }

    /// Do the limits allow this much to wait?
    #[inline]
    pub const fn allow(&self, packets: usize, bytes: u64) -> bool {
        packets <= self.packets && bytes <= self.bytes
    }
}

/// How much waits in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Packets.
    pub packets: usize,
    /// Bytes, including each packet's overhead.
    pub bytes: u64,
}

/// Packets in order of arrival. Every discipline uses it.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    packets: VecDeque<Packet>,
    bytes: u64,
    /// The overhead added to each packet's size: mahimahi's queues count the header of its tunnel.
    overhead: u32,
}

impl Backlog {
    pub(super) fn new(overhead: u32) -> Backlog {
        Backlog {
            overhead,
            ..Backlog::default()
        }
    }

    /// The size of `packet`, including the overhead.
    #[inline]
    pub(super) fn cost(&self, packet: &Packet) -> u64 {
        u64::from(packet.size) + u64::from(self.overhead)
    }

    /// Would one more packet keep within `limits`?
    #[inline]
    pub(super) fn has_room(&self, packet: &Packet, limits: &Limits) -> bool {
        limits.allow(self.packets.len() + 1, self.bytes + self.cost(packet))
    }

    /// Is the waiting data at most `size`, without overhead?
    #[inline]
    pub(super) fn at_most(&self, size: Bytes) -> bool {
        self.bytes <= size.get() + u64::from(self.overhead) * self.packets.len() as u64
    }

    #[inline]
    pub(super) fn push(&mut self, packet: Packet) {
        self.bytes += self.cost(&packet);
        self.packets.push_back(packet);
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= self.cost(&packet);
        Some(packet)
    }

    #[inline]
    pub(super) fn waiting(&self) -> Waiting {
        Waiting {
            packets: self.packets.len(),
            bytes: self.bytes,
        }
    }
}
