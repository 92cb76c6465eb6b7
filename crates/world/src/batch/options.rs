//! What a batch is told, and what is wrong with it.

use std::path::PathBuf;

use headway_cc::{Duration, SchemeError};
use headway_scenario::{Network, Scenario, StoreError, Transport};

use crate::{Recordings, RunError};

/// What a batch is told.
#[derive(Clone, Debug)]
pub struct BatchOptions {
    /// Runs of each scheme in each scenario; once where nothing varies, neither the seed's draws
    /// nor the world.
    pub runs: u32,
    /// How long a run lasts; `None` takes each scenario's own.
    pub duration: Option<Duration>,
    /// How much of a run's beginning the metrics leave out.
    pub warmup: Duration,
    /// The first run's seed; the others' are drawn from it.
    pub seed: u64,
    /// Runs at a time; `None` leaves it to the world.
    pub jobs: Option<usize>,
    /// Bins of the time series, kept for the first run of each scheme and scenario. In a run that
    /// is so long, or has so many flows, that there would be over a million of them they are wider.
    pub grid: Option<Duration>,
    /// The transport of all flows; `None` takes each scenario's own.
    pub transport: Option<Transport>,
    /// What is written down of the first run of each scheme and scenario, if anything.
    pub recordings: Option<Recordings>,
    /// Leaves a scheme out of a scenario that cannot serve it, instead of refusing both.
    pub leave_out: bool,
    /// Where traces are looked for besides the usual places.
    pub trace_dirs: Vec<PathBuf>,
    /// Version and commit of the code, for every row to carry.
    pub code_version: String,
}

/// A batch that cannot be set up, or a run of it that failed.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// A scheme cannot be had.
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    /// A trace cannot be had.
    #[error("scenario '{scenario}': {source}")]
    Trace {
        /// The scenario that needs it.
        scenario: String,
        /// Why not.
        source: StoreError,
    },
    /// A run cannot be set up, or cannot go on.
    #[error("scenario '{scenario}': {source}")]
    Run {
        /// The scenario.
        scenario: String,
        /// Why not.
        source: RunError,
    },
    /// The options contradict each other.
    #[error("{0}")]
    Options(String),
    /// Results that are to be taken over are of another batch: what they hold.
    #[error("holds {0}")]
    Other(String),
    /// A run died. Others are not affected.
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
        /// What was said.
        message: String,
    },
}

impl BatchOptions {
    /// How long a run may last: eleven days, so that a slip of the keyboard does not run for ever.
    const LONGEST: Duration = Duration::from_secs(1_000_000);
    /// More runs than this are a slip too.
    const MOST_RUNS: u32 = 1_000_000;
    /// More threads than this likewise.
    const MOST_JOBS: usize = 1024;
    /// A run's series have this many bins at most, those of all its flows and links together.
    const MOST_BINS: u128 = 1_000_000;

    /// How long a run of `scenario` lasts.
    pub(super) fn duration(&self, scenario: &Scenario) -> Duration {
        self.duration
            .unwrap_or_else(|| Duration::from_secs_f64(scenario.seconds()))
    }

    /// The bins of the time series of a run of `network`: wider than [`grid`](Self::grid) by a
    /// whole factor where there would be too many.
    pub(super) fn bin(&self, network: &Network, duration: Duration) -> Option<Duration> {
        let bin = self.grid?.max(Duration::from_nanos(1));
        let bins = u128::from(duration.as_nanos().div_ceil(bin.as_nanos()));
        // One series more for all flows together.
        let series = (network.flows.len() + network.links.len() + 1) as u128;
        let factor = (bins * series).div_ceil(Self::MOST_BINS).max(1) as u64;
        Some(Duration::from_nanos(bin.as_nanos().saturating_mul(factor)))
    }

    /// Are the numbers such as a batch may have?
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

    /// Does the length of its runs suit `scenario`?
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
                "scenario '{}' says itself how long it lasts, since that is what its family sweeps; leave --seconds out",
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
