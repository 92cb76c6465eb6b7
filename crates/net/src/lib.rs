//! Passive parts of a network: links, queues, traces and the sans-I/O transport.
//!
//! Every part takes the time as an argument and says when it wants to be called next, so that
//! the same code serves simulated and real time.

mod counters;
mod link;
mod packet;
pub mod queue;
mod ring;
mod server;
pub mod trace;
pub mod transport;

pub use counters::{Port, PortCounters, network_view};
pub use link::{Jitter, Link, LinkCounters, LinkEvent, LinkEventKind, Loss, LossProcess, Reorder};
pub use packet::{Ack, Body, Packet, Segment};
pub use server::{Server, TraceCursor};
