//! Metrics, time grids, Parquet and recordings: every world writes its results with these.

mod convergence;
mod fitness;
mod grid;
mod histogram;
mod meter;
mod metrics;
mod parquet_file;
mod parquet_read;
pub mod recording;
mod results;
mod results_read;
mod whole;

pub use convergence::Convergence;
pub use fitness::Fitness;
pub use grid::{Grid, GridSample, Series};
pub use histogram::LogHistogram;
pub use meter::FlowMeter;
pub use metrics::{Bottleneck, Metrics, jain_index, owl_utility};
pub use parquet_file::{WriteError, write_results, write_series};
pub use parquet_read::{ReadError, Table, Values};
pub use results::{ALL_FLOWS, Row, SCHEMA_VERSION, SeriesRow};
pub use results_read::{Results, read_results, read_series};
pub use whole::own_stream;
