//! Records a single run, packet by packet, in formats that other programs read.

mod event_file;
mod file;
mod link_log;
mod pcap;
mod qlog;

pub use event_file::{Event, EventFile, EventKind};
pub use file::{File, safe_name};
pub use link_log::{LinkLog, LinkLogHead};
pub use pcap::{Capture, Endpoint, TcpPacket, UdpPacket};
pub use qlog::{Cause, Metrics, Qlog};
