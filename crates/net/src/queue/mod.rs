//! Queue disciplines.

mod drop_tail;

use std::fmt::Debug;

use headway_cc::{Bytes, Time};

use crate::Packet;

pub use drop_tail::{DropTail, Limits};

/// A queue discipline: decides what waits, what is dropped or marked, and what goes next.
pub trait Queue: Debug + Send {
    /// A packet arrives. Whatever is dropped for it goes to `dropped`.
    fn enqueue(&mut self, now: Time, packet: Packet, dropped: &mut Vec<Packet>);
    /// Takes the packet to send next. Whatever is dropped on the way goes to `dropped`.
    fn dequeue(&mut self, now: Time, dropped: &mut Vec<Packet>) -> Option<Packet>;
    /// Packets waiting.
    fn len(&self) -> usize;
    /// Nothing waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Bytes waiting.
    fn bytes(&self) -> Bytes;
}
