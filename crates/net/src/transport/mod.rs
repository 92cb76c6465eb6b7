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

/// How data is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Profile {
    /// Loss when three later packets have arrived, RFC 6298 timeouts (1 s at least), an
    /// acknowledgement a packet, no receive window: what most simulation studies assume.
    #[default]
    Simple,
    /// As Linux: RACK-TLP (RFC 8985), proportional rate reduction (RFC 6937), 200 ms minimum
    /// timeout, delayed acknowledgements, a receive window.
    Linux,
}
