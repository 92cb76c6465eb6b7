//! The rows that results are made of.

use crate::{Fitness, Metrics, Series};

/// The version of the columns; a reader refuses a version that it does not know.
pub const SCHEMA_VERSION: i32 = 6;

/// The flow index of a run's pooled row: all flows under test together.
pub const ALL_FLOWS: i32 = -1;

/// One flow of one run, or all of them together.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The scenario's name.
    pub scenario: String,
    /// The scenario's canonical hash.
    pub scenario_hash: String,
    /// The scheme under test, with its parameters.
    pub scheme: String,
    /// Version and commit of the code that ran it.
    pub code_version: String,
    /// The world that carried it out.
    pub world: String,
    /// The run, from 0.
    pub run: i32,
    /// The run's seed.
    pub seed: u64,
    /// The flow, from 0, or [`ALL_FLOWS`].
    pub flow: i32,
    /// The flow's scheme: the scheme under test, or a competitor that the scenario names.
    pub flow_scheme: String,
    /// The trained model that decided for the flow, with the hash of its contents; `None` for
    /// schemes without one.
    pub model: Option<String>,
    /// How long the run lasted, s.
    pub seconds: f64,
    /// How much of its beginning was left out, s.
    pub warmup: f64,
    /// The metrics.
    pub metrics: Metrics,
    /// Whether the run can be trusted, the same in each of its rows; `None` in simulated time.
    pub fitness: Option<Fitness>,
}

/// One flow's time series, or all flows' together with the bottleneck's capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesRow {
    /// The scenario's name.
    pub scenario: String,
    /// The scheme under test, with its parameters.
    pub scheme: String,
    /// The run, from 0.
    pub run: i32,
    /// The flow, from 0, or [`ALL_FLOWS`].
    pub flow: i32,
    /// The series.
    pub series: Series,
    /// Capacity of the bottleneck in each bin, Mbit/s; empty for single flows.
    pub capacity_mbps: Vec<f64>,
    /// Packets at the bottleneck as each bin ended, including the one in transmission; the
    /// bottleneck is the link with most packets among those that data under test crosses. Empty for
    /// single flows.
    pub queue_packets: Vec<f64>,
}

impl SeriesRow {
    /// How many bins it has.
    pub fn bins(&self) -> usize {
        self.series.time_s.len()
    }
}
