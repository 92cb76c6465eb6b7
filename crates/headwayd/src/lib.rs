//! The agent for the kernel's flows.
//!
//! The agent loads the BPF programs of `crates/kernel/bpf`, serves the flows that choose them with
//! trained policies, and reports what it does. A flow's state comes as messages through a ring
//! buffer. The answer goes into the flow's slot of an array that the agent and the program share.
//! If the agent fails, the guard in the programs gives its flows to Cubic.
//!
//! The binary only calls [`main`]. The rest is a library, so that tests can run the agent in
//! simulated time (`tests/agent`) over another [`Kernel`](agent::Kernel) with another clock.
#![cfg(target_os = "linux")]

// The agent's own tests share a program with those of `tests/agent`.
#[cfg(test)]
extern crate self as headwayd;

pub mod agent;
mod cli;
mod control;
mod error;
mod network;
mod programs;
mod system;

pub use cli::main;
pub use error::{Error, Result};
pub use programs::Controller;
