//! Packets on links.

use headway_cc::{Bytes, Duration, Ecn, Header, Time};

/// A packet on its way. It is plain data, copied from link to link, and therefore small.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// The packet's owner: the host's index of the flow or cross-traffic source.
    pub flow: u32,
    /// Size on the wire in bytes.
    pub size: u16,
    /// How many links of its route follow the one that it is on.
    pub hops_left: u8,
    /// The ECN field.
    pub ecn: Ecn,
    /// When it reached the queue that it is in; on a wire, when it will reach the far end.
    pub arrived: Time,
    /// The packet's content.
    pub body: Body,
}

impl Packet {
    /// Size on the wire.
    #[inline]
    pub const fn size(&self) -> Bytes {
        Bytes::new(self.size as u64)
    }

    /// Signals congestion by a mark, if the packet is ECN-capable (RFC 3168 §5). Returns whether it
    /// is.
    pub(crate) fn mark(&mut self) -> bool {
        let is_capable = self.ecn != Ecn::NotEct;
        if is_capable {
            self.ecn = Ecn::Ce;
        }
        is_capable
    }

    /// Adds a wait in a queue, including transmission.
    #[inline]
    pub(crate) fn add_queueing(&mut self, wait: Duration) {
        if let Body::Data(segment) = &mut self.body {
            segment.queued += wait;
        }
    }

    /// Moves the packet's departure from a queue: its wait becomes longer or shorter.
    pub(crate) fn move_departure(&mut self, from: Time, to: Time) {
        if let Body::Data(segment) = &mut self.body {
            segment.queued = (segment.queued + to.since(from)).saturating_sub(from.since(to));
        }
    }
}

/// What a packet carries.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// Data under congestion control.
    Data(Segment),
    /// An acknowledgement.
    Ack(Ack),
    /// Traffic without acknowledgements.
    Cross,
}

/// The transport header of a data packet, and its delay so far.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// The transmission's number, which is never used twice.
    pub number: u64,
    /// The segment of the stream that it carries; a retransmission carries the same one.
    pub seq: u64,
    /// When it left its sender.
    pub sent: Time,
    /// Time spent in queues and in transmission so far: the delay without propagation.
    pub queued: Duration,
    /// The field that routers rewrite.
    pub header: Header,
}

/// An acknowledgement. It describes the packet that caused it, the 64 numbers before that, and the
/// stream's beginning, so that lost acknowledgements do no harm.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// The packet that caused this acknowledgement.
    pub number: u64,
    /// Bit i is set if packet `number - 1 - i` has arrived.
    pub earlier: u64,
    /// Every segment below this one has arrived.
    pub cumulative: u64,
    /// When packet `number` arrived, by the receiver's clock.
    pub received: Time,
    /// The last number of packet `number`'s header field as it arrived.
    pub echo: f32,
    /// How many bytes from `cumulative` on the receiver accepts.
    pub window: u32,
    /// The receiver half's message: an index into the host's store; [`Ack::NO_MESSAGE`] for none.
    pub message: u32,
    /// The ECN field of packet `number` as it arrived.
    pub ecn: Ecn,
}

impl Ack {
    /// There is no message.
    pub const NO_MESSAGE: u32 = u32::MAX;
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_packet_stays_small() {
        assert!(size_of::<super::Packet>() <= 72);
    }
}
