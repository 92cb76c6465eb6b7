//! A bench run of world `emu` or `kernel`: a scenario's hosts are network namespaces, its links are
//! in an emulator between them, and its flows run over real sockets.
//!
//! [`Emu`] is a world. It works out a [`Plan`] to see whether a run is possible, and has each run
//! carried out by a process of its own ([`worker`]); when the process ends, everything that the run
//! has made vanishes. [`Kernel`] does the same with sockets of the kernel alone.

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
