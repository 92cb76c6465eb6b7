//! The events that a host reports to a controller: plain data, borrowed during a call.

use crate::{Bytes, Duration, Rate, Time};

/// A note of the controller on a packet, which comes back with its acknowledgement or loss, such as
/// the number of a monitor interval or a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tag(pub u64);

impl Tag {
    /// The tag without a note.
    pub const NONE: Tag = Tag(0);
}

/// The ECN field of a packet (RFC 3168, RFC 9331).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ecn {
    /// The packet is not ECN-capable; a marking queue drops it.
    #[default]
    NotEct,
    /// The packet is ECN-capable; ABC's brake.
    Ect0,
    /// The packet is ECN-capable and asks for low latency; ABC's accelerate.
    Ect1,
    /// A router has experienced congestion.
    Ce,
}

impl Ecn {
    /// The field's two bits (RFC 3168 §5).
    pub const fn bits(self) -> u8 {
        match self {
            Ecn::NotEct => 0b00,
            Ecn::Ect1 => 0b01,
            Ecn::Ect0 => 0b10,
            Ecn::Ce => 0b11,
        }
    }

    /// The ECN field in the last two bits of a traffic class.
    pub const fn of_bits(traffic_class: u8) -> Ecn {
        match traffic_class & 0b11 {
            0b00 => Ecn::NotEct,
            0b01 => Ecn::Ect1,
            0b10 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }
}

/// A header field that routers may rewrite. The receiver echoes the last of its numbers (XCP's
/// feedback). A scheme with a half at the receiver may also send it something here, such as
/// Sprout's announced silence.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Header(pub [f32; 3]);

/// What a packet carries for routers.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Stamp {
    /// The ECN codepoint.
    pub ecn: Ecn,
    /// The field that routers rewrite.
    pub header: Header,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The time of sending.
    pub now: Time,
    /// The packet's number. Every packet has the next number, also a retransmission.
    pub number: u64,
    /// Its size on the wire.
    pub size: Bytes,
    /// The bytes in flight, including this packet.
    pub in_flight: Bytes,
    /// Whether it repeats data that was lost.
    pub retransmission: bool,
    /// Whether the application had nothing more to send at some time during the flight that the
    /// packet joins.
    pub app_limited: bool,
}

/// A packet that was acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// The packet's number.
    pub number: u64,
    /// The packet's size on the wire.
    pub size: Bytes,
    /// The time of sending.
    pub sent: Time,
    /// The time of arrival on the receiver's clock. It is unknown if one acknowledgement covers
    /// several packets.
    pub received: Option<Time>,
    /// The controller's note.
    pub tag: Tag,
    /// The ECN field on arrival; known if `received` is.
    pub ecn: Ecn,
    /// The last number of the header field on arrival; known if `received` is.
    pub echo: f32,
}

/// A packet that is taken for lost.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// The packet's number.
    pub number: u64,
    /// The packet's size on the wire.
    pub size: Bytes,
    /// The time of sending.
    pub sent: Time,
    /// The controller's note.
    pub tag: Tag,
    /// The bytes in flight after the packet was sent, including it.
    pub tx_in_flight: Bytes,
    /// All bytes that were lost before the packet was sent.
    pub lost_before: Bytes,
}

/// A flow's RTT statistics, with the gains of RFC 6298.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RttStats {
    /// The newest sample.
    pub latest: Duration,
    /// The smoothed RTT, gain 1/8.
    pub smoothed: Duration,
    /// The mean deviation of the RTT, gain 1/4.
    pub variation: Duration,
    /// The minimum RTT of the flow.
    pub min: Duration,
}

/// A delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation-02) over the flight of the
/// newest packet that was just acknowledged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSample {
    /// Bytes delivered over `interval`.
    pub delivered: Bytes,
    /// The longer of the sending and the acknowledging interval.
    pub interval: Duration,
    /// All bytes that were delivered when the packet was sent.
    pub prior_delivered: Bytes,
    /// Whether the application had nothing more to send at some time during the flight.
    pub app_limited: bool,
    /// The bytes in flight after the packet was sent, including it.
    pub tx_in_flight: Bytes,
    /// The bytes lost between the packet's sending and its acknowledgement.
    pub lost: Bytes,
}

impl RateSample {
    /// The rate at which the network delivered.
    #[inline]
    pub fn delivery_rate(&self) -> Rate {
        Rate::from_bytes_per(self.delivered, self.interval)
    }
}

/// Sums since the flow began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// Bytes sent, including retransmissions.
    pub sent: Bytes,
    /// Bytes acknowledged.
    pub delivered: Bytes,
    /// Bytes taken for lost, without those that arrived later.
    pub lost: Bytes,
    /// Bytes acknowledged with a CE mark.
    pub ce: Bytes,
}

/// The state of the transport's loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Recovery {
    /// There is nothing to repair.
    #[default]
    Open,
    /// Packets have arrived above a gap, which may be loss or reordering. The window should not
    /// grow now, because nothing was acknowledged in order (RFC 5681 §3.1).
    Disorder,
    /// The window was reduced for a CE mark less than a round trip ago.
    Cwr,
    /// A loss was found, and some packets of its flight are not accounted for.
    Recovery,
    /// The same as `Recovery`, but after a timeout.
    Loss,
}

/// The first sign of congestion in a flight, which is the time to reduce. It comes at most once a
/// round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// A packet was lost.
    Loss,
    /// A packet was marked CE.
    Ecn,
}

/// One or more acknowledgements and losses at one time.
///
/// Hosts with packets report every acknowledgement. A host with digests only (the kernel at
/// intervals) leaves `acked` and `lost` empty and fills the rest. A scheme that needs packets
/// declares [`Need::PerPacket`](crate::Need::PerPacket).
#[derive(Debug)]
pub struct Feedback<'a> {
    /// When the feedback arrived.
    pub now: Time,
    /// The packets that are newly acknowledged, by number.
    pub acked: &'a [Acked],
    /// The packets that are newly taken for lost, by number.
    pub lost: &'a [Lost],
    /// The bytes that are newly acknowledged.
    pub acked_bytes: Bytes,
    /// The bytes that are newly lost.
    pub lost_bytes: Bytes,
    /// The RTT of the newest acknowledged packet, if it is a new sample.
    pub rtt: Option<Duration>,
    /// The RTT statistics, including `rtt`.
    pub rtt_stats: RttStats,
    /// The delivery-rate sample, if one could be taken.
    pub rate: Option<RateSample>,
    /// The sums since the flow began, including this feedback.
    pub counters: Counters,
    /// Bytes in flight after this feedback.
    pub in_flight: Bytes,
    /// Bytes in flight before this feedback.
    pub prior_in_flight: Bytes,
    /// The largest packet number acknowledged so far.
    pub largest_acked: u64,
    /// The number of the next packet to be sent.
    pub next_number: u64,
    /// Whether the window limited the sender, and not the application or pacing.
    pub cwnd_limited: bool,
    /// Whether the application had nothing more to send at some time during the last flight.
    pub app_limited: bool,
    /// The state of loss recovery after this feedback.
    pub recovery: Recovery,
    /// Set when this feedback is the first sign of congestion in its flight.
    pub congestion: Option<Congestion>,
    /// Whether all packets behind the last reduction have arrived, so that it should be undone.
    pub undo: bool,
    /// The messages of the receiver's half of the scheme, in order; often empty.
    pub message: &'a [u8],
}

/// The retransmission timer ran out.
#[derive(Debug)]
pub struct Rto<'a> {
    /// The time of the timeout.
    pub now: Time,
    /// The packets that were in flight, and are now taken for lost.
    pub lost: &'a [Lost],
    /// The bytes that were in flight.
    pub prior_in_flight: Bytes,
    /// The number of timeouts in a row, including this one: 1 is the first for this data.
    pub consecutive: u32,
    /// The number of the next packet to be sent.
    pub next_number: u64,
}

/// The report of a path's switches (Owl §IV, Eq. 4 and 5).
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct NetworkView {
    /// Partial network congestion: the largest |packets in - packets out| a second of the known
    /// switches.
    pub pnc: f64,
    /// Partial network availability: the smallest free share of a known link, 0 to 1.
    pub pna: f64,
    /// The share of the path's switches that are known, 0 to 1.
    pub known: f64,
    /// The age of the counters.
    pub age: Duration,
}

/// A data packet that arrived at the receiver.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The time of arrival on the receiver's clock.
    pub now: Time,
    /// The packet's number.
    pub number: u64,
    /// The packet's size on the wire.
    pub size: Bytes,
    /// The time of sending on the sender's clock.
    pub sent: Time,
    /// The ECN field on arrival.
    pub ecn: Ecn,
    /// The header field on arrival.
    pub header: Header,
}
