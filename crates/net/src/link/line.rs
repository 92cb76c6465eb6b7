//! Propagating packets, in order of delivery.

use headway_cc::{Duration, Time};

use crate::Packet;
use crate::ring::Ring;

/// Packets by delivery time.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) packets: Ring<Packet>,
    /// When the last packet, or the last one that was here, is delivered.
    last: Time,
}

impl Line {
    /// Adds `packet`, which arrived at `arrived` and whose last bit leaves at `at`.
    #[inline(always)]
    pub(super) fn push(&mut self, arrived: Time, at: Time, delay: Duration, packet: &Packet) {
        // The order is kept even if the delay has just become shorter.
        self.last = self.last.max(at + delay);
        let packet = self.packets.push(*packet);
        packet.arrived = self.last;
        packet.add_queueing(at.since(arrived));
    }

    /// The last `n` packets.
    pub(super) fn last_mut(&mut self, n: usize) -> impl Iterator<Item = &mut Packet> {
        self.packets.last_mut(n)
    }

    /// Moves the delivery of the last `n` packets, because their departure or the delay after it
    /// has changed.
    pub(super) fn deliver_last(
        &mut self,
        n: usize,
        departures: impl Iterator<Item = Time>,
        delay: Duration,
    ) {
        let before = self.packets.tail() - n as u64;
        let mut last = match before.checked_sub(1).and_then(|b| self.packets.get(b)) {
            Some(packet) => packet.arrived,
            None => Time::ZERO,
        };
        for (packet, departure) in self.packets.last_mut(n).zip(departures) {
            last = last.max(departure + delay);
            packet.arrived = last;
        }
        if n > 0 {
            self.last = last;
        }
    }
}
