//! The options of a batch, and their errors.

use std::path::PathBuf;

use headway_cc::{Duration, SchemeError};
use headway_scenario::{Network, Scenario, StoreError, Transport};

use crate::{Recordings, RunError};

/// The options of a batch.
#[derive(Clone, Debug)]
pub struct BatchOptions {
    /// Runs of each scheme in each scenario. There is only one if nothing varies: the seed draws
    /// nothing and the world is deterministic.
    pub runs: u32,
    /// How long a run lasts; `None` takes each scenario's own.
    pub duration: Option<Duration>,
    /// How much of a run's beginning the metrics leave out.
    pub warmup: Duration,
    /// The first run's seed, from which the seeds of the others are drawn.
    pub seed: u64,
    /// Runs at a time; `None` uses the world's default.
    pub jobs: Option<usize>,
    /// Bins of the time series, which is kept for the first run of each scheme and scenario. The
    /// bins become wider if there would be over a million, because the run is long or has many
    /// flows.
    pub grid: Option<Duration>,
    /// The transport of all flows; `None` takes each scenario's own.
    pub transport: Option<Transport>,
    /// The recordings of the first run of each scheme and scenario, if any.
    pub recordings: Option<Recordings>,
    /// Whether to leave a scheme out of a scenario that cannot serve it, instead of refusing both.
    pub leave_out: bool,
    /// Folders in which traces are looked for, besides the usual ones.
    pub trace_dirs: Vec<PathBuf>,
    /// Version and commit of the code; every row has them.
    pub code_version: String,
}

/// A batch that cannot be set up, or a run of it that failed.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// A scheme is not available.
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    /// A trace is not available.
    #[error("scenario '{scenario}': {source}")]
    Trace {
        /// The scenario that needs it.
        scenario: String,
        /// The cause.
        source: StoreError,
    },
    /// A run cannot be set up, or cannot go on.
    #[error("scenario '{scenario}': {source}")]
    Run {
        /// The scenario.
        scenario: String,
        /// The cause.
        source: RunError,
    },
    /// The options contradict each other.
    #[error("{0}")]
    Options(String),
    /// Earlier results belong to another batch. The text says what they hold.
    #[error("holds {0}")]
    Other(String),
    /// A run panicked. Other runs are not affected.
    #[error(
        "scenario '{scenario}', scheme '{scheme}', run {run}: {message} (a defect of Headway: please report it)"
    )]
    Panic {
        /// The scenario.
        scenario: String,
        /// The scheme.
        scheme: String,
        /// The run.
        run: u32,
        /// The panic's message.
        message: String,
    },
}

impl BatchOptions {
    /// The longest run: eleven days, so that a typing error does not run for ever.
    const LONGEST: Duration = Duration::from_secs(1_000_000);
    /// The most runs; more are a typing error too.
    const MOST_RUNS: u32 = 1_000_000;
    /// The most threads; more are a typing error too.
    const MOST_JOBS: usize = 1024;
    /// The most bins in a run's series, over all its flows and links.
    const MOST_BINS: u128 = 1_000_000;

    /// The length of a run of `scenario`.
    pub(super) fn duration(&self, scenario: &Scenario) -> Duration {
        self.duration
            .unwrap_or_else(|| Duration::from_secs_f64(scenario.seconds()))
    }

    /// The bins of the time series of a run of `network`: wider than [`grid`](Self::grid) by a
    /// whole factor if there would be too many.
    pub(super) fn bin(&self, network: &Network, duration: Duration) -> Option<Duration> {
        let bin = self.grid?.max(Duration::from_nanos(1));
        let bins = u128::from(duration.as_nanos().div_ceil(bin.as_nanos()));
        // There is one more series, for all flows together.
        let series = (network.flows.len() + network.links.len() + 1) as u128;
        let factor = (bins * series).div_ceil(Self::MOST_BINS).max(1) as u64;
        Some(Duration::from_nanos(bin.as_nanos().saturating_mul(factor)))
    }

    /// Checks that the numbers are in their ranges.
    pub(super) fn check(&self) -> Result<(), BatchError> {
        let within = |most: usize, name: &str, number: usize| match (1..=most).contains(&number) {
            true => Ok(()),
            false => Err(BatchError::Options(format!(
                "{name} must be from 1 to {most}"
            ))),
        };
        within(Self::MOST_RUNS as usize, "runs", self.runs as usize)?;
        within(Self::MOST_JOBS, "jobs", self.jobs.unwrap_or(1))
    }

    /// Checks that the length of runs is possible in `scenario`.
    pub(super) fn check_length(&self, scenario: &Scenario) -> Result<(), BatchError> {
        let duration = self.duration(scenario);
        let swept = scenario.sweep().map(|s| s.key.as_str());
        let message = if duration > Self::LONGEST {
            format!("seconds must be at most {}", Self::LONGEST.as_secs_f64())
        } else if duration > scenario.longest() {
            format!(
                "seconds must be at most {} for scenario '{}', whose random events would not fit in memory",
                scenario.longest().as_secs_f64().floor(),
                scenario.name()
            )
        } else if self.duration.is_some() && swept == Some("seconds") {
            format!(
                "scenario '{}' sets its own length, because its family sweeps it; leave --seconds out",
                scenario.name()
            )
        } else if self.warmup >= duration {
            format!(
                "warmup ({} s) must be less than seconds ({})",
                self.warmup.as_secs_f64(),
                duration.as_secs_f64()
            )
        } else {
            return Ok(());
        };
        Err(BatchError::Options(message))
    }
}
