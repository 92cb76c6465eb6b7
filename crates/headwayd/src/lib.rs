//! The agent for the kernel's flows.
//!
//! It loads the BPF programs of `crates/kernel/bpf`, serves the flows that choose them with trained
//! policies, and tells of what it does. A flow's state comes as messages through a ring buffer; the
//! answer goes into the flow's slot of an array that both see. What happens to flows when it fails
//! is the guard's business, in the programs themselves.
//!
//! The binary is [`main`] and nothing else. The rest is a library so that tests can run the agent
//! in simulated time (`tests/agent`): there something else is its [`Kernel`](agent::Kernel), and
//! its clock.
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
