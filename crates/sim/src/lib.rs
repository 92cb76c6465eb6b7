//! World 1: networks in simulated time.
//!
//! A [`Simulation`] runs the parts of `headway-net` by an [`EventQueue`]. [`Sim`] is the world in
//! which a `headway_world::Batch` runs many of them.

mod error;
mod event_queue;
mod flow;
mod observer;
mod recorder;
mod simulation;
mod switches;
mod world;

pub use error::SimulationError;
pub use event_queue::EventQueue;
pub use headway_world::{FlowSeries, Options, Outcome, TraceSource};
pub use observer::{Hold, Observer};
pub use recorder::Recorder;
pub use simulation::Simulation;
pub use world::{Sim, WORLD};
