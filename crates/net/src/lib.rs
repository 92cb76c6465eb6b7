//! Passive parts of a network: links, queues, traces and the sans-I/O transport.
//!
//! Every part takes the time as an argument, so that the same code serves simulated and real time.

pub mod trace;
