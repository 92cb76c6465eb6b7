//! Any program behind an emulated link: `headway shell`.
//!
//! The program runs in a network namespace whose only way out is a TUN device. The emulator leads
//! its packets to the far side, the namespace in which the command was started.

mod address;
mod clean;
mod draft;
mod error;
mod folder;
mod hosts;
mod live;
mod meter;
mod path;
mod processes;
mod programs;
mod registry;
mod session;

pub use address::Slice;
pub use clean::{Ended, Removed, clean};
pub use error::ShellError;
pub use live::Live;
pub use meter::{DirectionSummary, Summary};
pub use path::PathOptions;
pub use registry::{Entry, Registry};
pub use session::{End, Options, run};
