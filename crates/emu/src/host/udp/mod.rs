//! Our own transport over UDP sockets: any scheme of the registry, in real time.

mod receiver;
mod sender;
mod socket;

pub use receiver::Receiver;
pub use sender::Sender;

/// So many datagrams are read, or sent, before an end looks at what else there is to do.
const BATCH: usize = 64;
