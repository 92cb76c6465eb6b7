//! The bytes of packets that are on their way.

use crate::sys::{Datagram, Tun};

/// Where the bytes of a packet lie: the `number` of its [`Segment`](headway_net::Segment).
pub(super) type Handle = u64;

/// Packets under way. Each has a slot, and slots are used again. The slab grows by chunks, because
/// moving packets would hold them up.
#[derive(Debug, Default)]
pub(super) struct Slab {
    chunks: Vec<Box<[Slot]>>,
    free: Vec<u32>,
}

/// A packet's bytes, and what links do not need to know about it.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) bytes: Datagram,
    pub(super) len: u16,
    pub(super) way: u32,
    /// Where the UDP header of a packet of our own transport begins; 0 for other packets.
    pub(super) udp: u16,
}

impl Slab {
    const CHUNK: usize = 256;
    /// The most packets that it holds: 400 MB, a second of full packets at 3 Gbit/s.
    const MOST: usize = 1 << 18;

    /// A slot for a packet; `None` if too many are under way.
    pub(super) fn take(&mut self) -> Option<Handle> {
        if self.free.is_empty() {
            self.grow();
        }
        self.free.pop().map(Handle::from)
    }

    #[cold]
    fn grow(&mut self) {
        let len = self.chunks.len() * Self::CHUNK;
        if len == Self::MOST {
            return;
        }
        let empty = Slot {
            bytes: [0; Tun::MTU],
            len: 0,
            way: 0,
            udp: 0,
        };
        self.chunks.push(vec![empty; Self::CHUNK].into());
        let new = len as u32..(len + Self::CHUNK) as u32;
        self.free.extend(new.rev());
    }

    /// Frees the slot of a packet that has left or was lost.
    pub(super) fn free(&mut self, handle: Handle) {
        self.free.push(handle as u32);
    }

    pub(super) fn get_mut(&mut self, handle: Handle) -> &mut Slot {
        let handle = handle as usize;
        &mut self.chunks[handle / Self::CHUNK][handle % Self::CHUNK]
    }

    /// How many packets are under way.
    pub(super) fn in_use(&self) -> usize {
        self.chunks.len() * Self::CHUNK - self.free.len()
    }
}

impl Slot {
    pub(super) fn packet(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    pub(super) fn packet_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..usize::from(self.len)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_used_again_and_bounded() {
        let mut slab = Slab::default();
        let first = slab.take().unwrap();
        slab.get_mut(first).len = 7;
        let second = slab.take().unwrap();
        assert_ne!(first, second);
        assert_eq!((slab.in_use(), slab.get_mut(first).len), (2, 7));
        slab.free(first);
        assert_eq!(slab.take(), Some(first));
        slab.chunks.resize(Slab::MOST / Slab::CHUNK, Box::new([]));
        slab.free.clear();
        assert_eq!(slab.take(), None);
    }
}
