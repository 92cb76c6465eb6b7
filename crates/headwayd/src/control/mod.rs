//! Commands for the agent while it serves: over a socket of the file system, and over HTTP on
//! loopback.
//!
//! Each client has a thread of its own, which reads the command, hands it to the agent and waits.
//! So neither a slow reader nor a large model that is read again holds up the agent or other
//! clients.

mod client;
mod mailbox;
mod metrics;
mod patient;
mod socket;
mod table;
mod whole;

pub use client::ask;
pub use mailbox::{AgentCommand, Mailbox};
pub use metrics::serve as serve_metrics;
pub use socket::{Socket, serve as serve_socket};
pub use table::text as table;
pub use whole::Reloads;
