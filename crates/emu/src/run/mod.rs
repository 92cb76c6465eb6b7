//! A bench run of world `emu` or `kernel`: a scenario's hosts as network namespaces, its links in
//! an emulator between them, its flows over real sockets.
//!
//! [`Emu`] is a world: it works out a [`Plan`] to see whether a run can be had, and has each run
//! carried out by a process of its own ([`worker`]), with which everything that the run has made
//! vanishes. [`Kernel`] has all of that, with none but the kernel's own sockets.

mod bed;
mod complaints;
mod daemon;
mod emu;
mod ends;
mod honesty;
mod hosting;
mod job;
mod kernel;
mod measure;
mod plan;
mod play;
mod recording;
mod worker;
mod worker_process;

pub use daemon::find_headwayd;
pub use emu::{EMU, Emu};
pub use kernel::{KERNEL, Kernel};
pub use plan::Plan;
pub use play::play;
pub use worker::worker;
