//! The BPF programs, loaded and registered.

mod controller;
pub mod kept;
pub mod layout;
pub mod left_over;
pub mod listeners;
mod map;
mod program;

pub use controller::Controller;
pub use listeners::Listeners;
pub use map::{Counters, KnownFlows, Settings, Slots};
pub use program::{Options, Program};
