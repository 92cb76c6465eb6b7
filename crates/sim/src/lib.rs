//! World 1: networks in simulated time.
//!
//! A [`Simulation`] drives the parts of `headway-net` through an [`EventQueue`]; a [`Batch`]
//! runs many of them on all cores.

mod batch;
mod cross;
mod error;
mod event_queue;
mod fairness;
mod flow;
mod links;
mod measure;
mod observer;
mod recorder;
mod simulation;
mod summary;
mod switches;

pub use batch::{Batch, BatchError, BatchOptions, LeftOut, Progress, RecordingRow};
pub use error::SimulationError;
pub use event_queue::EventQueue;
pub use observer::Observer;
pub use recorder::{Recorded, Recorder, Recordings};
pub use simulation::{Options, Simulation, TraceSource};
pub use summary::{FlowSeries, Outcome};

use headway_cc::{Need, World};

/// This world and what it supplies.
pub const WORLD: World = World {
    name: "sim",
    supplies: &[
        Need::PerPacket,
        Need::RateSample,
        Need::Pacing,
        Need::PerSend,
        Need::ReceiverTime,
        Need::Receiver,
        Need::EcnEcho,
        Need::Header,
    ],
};
