//! What all worlds share: the links, the cross traffic and the flows of a scenario, a run's
//! measurements, and batches of runs.
//!
//! A world implements [`World`]; a [`Batch`] checks and carries out runs in any of them.

mod batch;
mod changes;
mod cross;
mod fairness;
mod flow;
mod flow_plan;
mod link_logs;
mod links;
mod measurement;
mod outcome;
mod path;
mod path_range;
mod recordings;
mod setup;
mod window;
mod world;

pub use batch::{Batch, BatchError, BatchOptions, Finished, LeftOut, Progress, RecordingRow};
pub use changes::Changes;
pub use cross::CrossTraffic;
pub use flow::{Measured, MeasuredFlow};
pub use flow_plan::{FlowPlan, grid_sample};
pub use link_logs::LinkLogs;
pub use links::{TraceSource, build_links, router_of_run};
pub use measurement::Measurement;
pub use outcome::{FlowOutcome, FlowSeries, Outcome};
pub use path::{PathState, path_over_time};
pub use path_range::PathRange;
pub use recordings::{Recorded, Recordings};
pub use setup::{Hops, MAX_HOPS, SetupError, Way, Ways, check_scheme};
pub use world::{Ended, Options, Recording, RunError, Trial, World};
