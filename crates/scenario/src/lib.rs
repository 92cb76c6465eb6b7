//! The scenario schema that every world reads.

mod network;

pub use network::*;
