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

/// What this transport supplies to schemes, in every world that runs it.
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

/// Does the receiver acknowledge each packet of a scheme with these needs? Schemes that look at
/// single packets were published with transports that do, so it does even where the profile would
/// delay.
fn acknowledges_every_packet(profile: Profile, needs: &[Need]) -> bool {
    let single = |need| matches!(need, Need::PerPacket | Need::ReceiverTime | Need::Header);
    profile == Profile::Simple || needs.iter().copied().any(single)
}

/// How the transport carries data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Profile {
    /// Loss after three later arrivals, RFC 6298 timeouts (1 s at least), an acknowledgement for
    /// each packet, no receive window: what most simulation studies assume.
    #[default]
    Simple,
    /// Linux's transport: RACK-TLP (RFC 8985), proportional rate reduction (RFC 6937), 200 ms
    /// minimum timeout, delayed acknowledgements (except for schemes that look at single packets),
    /// a receive window.
    Linux,
}
