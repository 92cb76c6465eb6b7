//! The agent for the kernel's flows.
//!
//! It loads the BPF programs of `crates/kernel/bpf`, serves the flows that choose them with trained policies, and tells
//! of what it does. A flow's state comes as messages through a ring buffer; the answer goes into the flow's slot of an
//! array that both see. What happens to flows when it fails is the guard's business, in the programs themselves.

#[cfg(target_os = "linux")]
mod agent;
#[cfg(target_os = "linux")]
mod cli;
#[cfg(target_os = "linux")]
mod control;
#[cfg(target_os = "linux")]
mod error;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod programs;
#[cfg(target_os = "linux")]
mod system;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    cli::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!("headwayd: BPF programs need Linux");
    std::process::ExitCode::from(2)
}
