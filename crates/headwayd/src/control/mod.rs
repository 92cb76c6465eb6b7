//! What others ask of the agent while it serves: by a socket of the file system, and over HTTP on
//! loopback.
//!
//! A thread of its own reads each request, hands it on and waits. So neither a slow reader nor a
//! large model that is read again holds up the agent, or the next client of the socket.

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
