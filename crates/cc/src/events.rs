//! What a host tells a controller: plain data, borrowed for the length of a call.

use crate::{Bytes, Duration, Rate, Time};

/// A note that a controller ties to a packet when it leaves and gets back with its fate
/// (a monitor interval, a decision's number).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tag(pub u64);

impl Tag {
    /// Nothing noted.
    pub const NONE: Tag = Tag(0);
}

/// The ECN field of a packet (RFC 3168, RFC 9331).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ecn {
    /// Not ECN-capable: a marking queue drops it.
    #[default]
    NotEct,
    /// ECN-capable; ABC's brake.
    Ect0,
    /// ECN-capable, low-latency service; ABC's accelerate.
    Ect1,
    /// Congestion experienced.
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

    /// What the last two bits of a traffic class say.
    pub const fn of_bits(traffic_class: u8) -> Ecn {
        match traffic_class & 0b11 {
            0b00 => Ecn::NotEct,
            0b01 => Ecn::Ect1,
            0b10 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }
}

/// A header field that routers may rewrite; the receiver echoes the last of its numbers (XCP's
/// feedback). A scheme with a half at the receiver may also tell it something here (Sprout's
/// silence to come).
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Header(pub [f32; 3]);

/// What the next packet carries for the routers on its way.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Stamp {
    /// The ECN codepoint.
    pub ecn: Ecn,
    /// The field that routers rewrite.
    pub header: Header,
}

/// A packet leaves the sender.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When.
    pub now: Time,
    /// Its number: one more than the last, retransmission or not.
    pub number: u64,
    /// Its size on the wire.
    pub size: Bytes,
    /// Bytes in flight, this packet among them.
    pub in_flight: Bytes,
    /// Does it repeat data that was lost?
    pub retransmission: bool,
    /// Was there nothing more to send at some time during the flight that it joins?
    pub app_limited: bool,
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// Its number.
    pub number: u64,
    /// Its size on the wire.
    pub size: Bytes,
    /// When it left.
    pub sent: Time,
    /// When it arrived, by the receiver's clock; unknown where one acknowledgement speaks for
    /// several.
    pub received: Option<Time>,
    /// The controller's note.
    pub tag: Tag,
    /// The ECN field as it arrived; known where `received` is.
    pub ecn: Ecn,
    /// The last number of the header field as it arrived; known where `received` is.
    pub echo: f32,
}

/// A packet that is taken for lost.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// Its number.
    pub number: u64,
    /// Its size on the wire.
    pub size: Bytes,
    /// When it left.
    pub sent: Time,
    /// The controller's note.
    pub tag: Tag,
    /// Bytes in flight when it had left, itself among them.
    pub tx_in_flight: Bytes,
    /// Bytes lost in all before it left.
    pub lost_before: Bytes,
}

/// Round-trip statistics of a flow (RFC 6298 gains).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RttStats {
    /// The newest sample.
    pub latest: Duration,
    /// The smoothed RTT, gain 1/8.
    pub smoothed: Duration,
    /// The mean deviation, gain 1/4.
    pub variation: Duration,
    /// The least sample of the flow.
    pub min: Duration,
}

/// A delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation-02), taken over the
/// flight of the newest packet that was just acknowledged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSample {
    /// Bytes delivered over `interval`.
    pub delivered: Bytes,
    /// The longer of the sending and the acknowledging interval.
    pub interval: Duration,
    /// Bytes delivered in all when the packet left.
    pub prior_delivered: Bytes,
    /// Was there nothing more to send at some time during the flight?
    pub app_limited: bool,
    /// Bytes in flight when the packet had left, itself among them.
    pub tx_in_flight: Bytes,
    /// Bytes lost between the packet's leaving and its acknowledgement.
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
    /// Bytes sent, retransmissions among them.
    pub sent: Bytes,
    /// Bytes acknowledged.
    pub delivered: Bytes,
    /// Bytes taken for lost (less those that arrived after all).
    pub lost: Bytes,
    /// Bytes acknowledged with a CE mark.
    pub ce: Bytes,
}

/// Where the transport's loss recovery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Recovery {
    /// Nothing to repair.
    #[default]
    Open,
    /// Packets have arrived beyond a gap, which may be loss or reordering: not a time to grow, for
    /// nothing in order was acknowledged (RFC 5681 §3.1).
    Disorder,
    /// A CE mark was answered less than a round trip ago.
    Cwr,
    /// A loss was seen and the packets of its flight are not all accounted for.
    Recovery,
    /// As `Recovery`, begun by a timeout.
    Loss,
}

/// The first sign of congestion in a flight: the moment to reduce. At most once a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// A packet was lost.
    Loss,
    /// A packet was marked CE.
    Ecn,
}

/// One to many acknowledgements and losses at one moment.
///
/// Per-packet hosts give it for every acknowledgement that arrives. A host that can only give
/// digests (the kernel at intervals) leaves `acked` and `lost` empty and fills the rest; a
/// scheme that needs packets says so ([`Need::PerPacket`](crate::Need::PerPacket)).
#[derive(Debug)]
pub struct Feedback<'a> {
    /// When the feedback arrived.
    pub now: Time,
    /// Packets newly acknowledged, by number.
    pub acked: &'a [Acked],
    /// Packets newly taken for lost, by number.
    pub lost: &'a [Lost],
    /// Bytes newly acknowledged.
    pub acked_bytes: Bytes,
    /// Bytes newly lost.
    pub lost_bytes: Bytes,
    /// The RTT of the newest packet acknowledged, if it is a new sample.
    pub rtt: Option<Duration>,
    /// Round-trip statistics, `rtt` included.
    pub rtt_stats: RttStats,
    /// The delivery-rate sample, if one could be taken.
    pub rate: Option<RateSample>,
    /// Sums since the flow began, this feedback included.
    pub counters: Counters,
    /// Bytes in flight after this feedback.
    pub in_flight: Bytes,
    /// Bytes in flight before it.
    pub prior_in_flight: Bytes,
    /// The largest packet number acknowledged so far.
    pub largest_acked: u64,
    /// The number that the next packet sent will have.
    pub next_number: u64,
    /// Did the window, rather than the application or pacing, hold the sender back?
    pub cwnd_limited: bool,
    /// Was there nothing more to send at some time during the last flight?
    pub app_limited: bool,
    /// Loss recovery after this feedback.
    pub recovery: Recovery,
    /// Set when this feedback is the first sign of congestion in its flight.
    pub congestion: Option<Congestion>,
    /// Everything that the last reduction was for has arrived after all: undo it.
    pub undo: bool,
    /// What the receiver's half of the scheme has to say, in order; often nothing.
    pub message: &'a [u8],
}

/// The retransmission timer ran out.
#[derive(Debug)]
pub struct Rto<'a> {
    /// When.
    pub now: Time,
    /// What was in flight and is now taken for lost.
    pub lost: &'a [Lost],
    /// Bytes that were in flight.
    pub prior_in_flight: Bytes,
    /// Timeouts in a row, this one included: 1 is the first for this data.
    pub consecutive: u32,
    /// The number that the next packet sent will have.
    pub next_number: u64,
}

/// What a path's switches tell of it (Owl §IV, Eq. 4 and 5).
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct NetworkView {
    /// Partial network congestion: the largest |packets in - packets out| a second of the known
    /// switches.
    pub pnc: f64,
    /// Partial network availability: the least free share of a known link, 0 to 1.
    pub pna: f64,
    /// The share of the path's switches that are known, 0 to 1.
    pub known: f64,
    /// How old the counters are.
    pub age: Duration,
}

/// A data packet arrives at the receiver.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When, by the receiver's clock.
    pub now: Time,
    /// Its number.
    pub number: u64,
    /// Its size on the wire.
    pub size: Bytes,
    /// When it left, by the sender's clock.
    pub sent: Time,
    /// The ECN field as it arrived.
    pub ecn: Ecn,
    /// The header field as it arrived.
    pub header: Header,
}
