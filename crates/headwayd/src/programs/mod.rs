//! The BPF programs, loaded and registered.

mod controller;
mod left_over;
pub mod listeners;
mod map;
mod program;

pub use controller::Controller;
pub use listeners::Listeners;
pub use map::{Counters, Settings, Slots};
pub use program::{Options, Program};
