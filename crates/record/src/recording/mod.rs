//! What a single run looked like, packet by packet, in formats that others read.

mod file;
mod link_log;
mod pcap;
mod qlog;

pub use file::{File, safe_name};
pub use link_log::{LinkLog, LinkLogHead};
pub use pcap::{Capture, Endpoint, TcpPacket, UdpPacket};
pub use qlog::{Cause, Metrics, Qlog};
