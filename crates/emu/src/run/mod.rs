//! A bench run of world `emu`: a scenario's hosts as network namespaces, its links in an emulator between
//! them, its flows over real sockets.
//!
//! [`Emu`] is the world: it works out a [`Plan`] to see whether a run can be had, and has each run carried
//! out by a process of its own ([`worker`]), with which everything that the run has made vanishes.

mod bed;
mod emu;
mod ends;
mod honesty;
mod job;
mod measure;
mod plan;
mod play;
mod recording;
mod worker;

pub use emu::{Emu, WORLD};
pub use plan::Plan;
pub use play::play;
pub use worker::worker;
