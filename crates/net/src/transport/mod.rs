//! The transport, sans I/O: a sender that hosts a controller, and a receiver that acknowledges.
//!
//! Every transmission has a number of its own (as in QUIC), so a retransmission is never
//! mistaken for the original. Two profiles: [`Profile::Simple`] and [`Profile::Linux`].

mod delivery;
mod flight;
mod pacer;
mod prr;
mod receiver;
mod recovery;
mod rtt;
mod sender;
mod source;

pub use receiver::{Receiver, ReceiverConfig};
pub use sender::{Sender, SenderConfig};
pub use source::Source;

use headway_cc::Need;

/// What schemes have of this transport, in every world that runs it.
pub const SUPPLIES: &[Need] = &[
    Need::PerPacket,
    Need::RateSample,
    Need::Pacing,
    Need::PerSend,
    Need::ReceiverTime,
    Need::Receiver,
    Need::EcnEcho,
    Need::Header,
];

/// Does the receiver acknowledge each packet of a scheme with such needs? Schemes that look at
/// single packets ran over transports of their own, which do, also where the profile would delay.
fn acknowledges_every_packet(profile: Profile, needs: &[Need]) -> bool {
    let single = |need| matches!(need, Need::PerPacket | Need::ReceiverTime | Need::Header);
    profile == Profile::Simple || needs.iter().copied().any(single)
}

/// How data is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Profile {
    /// Loss when three later packets have arrived, RFC 6298 timeouts (1 s at least), an
    /// acknowledgement a packet, no receive window: what most simulation studies assume.
    #[default]
    Simple,
    /// As Linux: RACK-TLP (RFC 8985), proportional rate reduction (RFC 6937), 200 ms minimum
    /// timeout, delayed acknowledgements (but for schemes that look at single packets), a receive
    /// window.
    Linux,
}
