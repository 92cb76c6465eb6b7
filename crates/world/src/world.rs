//! A world: an environment in which a scenario's runs are carried out.

use std::fmt::Debug;
use std::path::PathBuf;

use headway_cc::{Duration, Scheme, SchemeError};
use headway_scenario::{Network, Scenario, TraceStore};

use crate::{Outcome, Recorded, Recordings, SetupError};

/// An environment in which runs are carried out.
pub trait World: Debug + Send + Sync {
    /// The world's name, and what it supplies to schemes.
    fn about(&self) -> headway_cc::World;

    /// The scheme's canonical spelling in this world: two specs with the same spelling are the same
    /// scheme.
    ///
    /// # Errors
    /// [`SchemeError`] if there is no such scheme, or no such parameter.
    fn canonical(&self, scheme: &str) -> Result<String, SchemeError>;

    /// Can it run the scheme at all, in some scenario and on some machine?
    fn serves(&self, scheme: &Scheme) -> bool {
        self.about().lacks(scheme).is_none()
    }

    /// The default number of runs at a time; `None` for one a core.
    fn default_jobs(&self) -> Option<usize> {
        None
    }

    /// Do runs with the same options give the same bits? If not, runs are repeated even if the seed
    /// varies nothing.
    fn is_deterministic(&self) -> bool {
        true
    }

    /// Checks that such a run is possible. The batch calls it for each scenario and scheme before
    /// anything runs.
    ///
    /// # Errors
    /// [`RunError`]
    fn check(&self, trial: &Trial<'_>) -> Result<(), RunError>;

    /// Carries a run out. It calls `go_on` now and then with the additional time of the run that is
    /// done; the result says whether to continue.
    fn run(&self, trial: &Trial<'_>, go_on: &mut dyn FnMut(Duration) -> bool) -> Ended;
}

/// The options of a run beyond its network.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The length of the run.
    pub duration: Duration,
    /// How much of its beginning the metrics leave out.
    pub warmup: Duration,
    /// The seed of every random draw in the run.
    pub seed: u64,
    /// The bins of the time series, if a series is requested.
    pub grid: Option<Duration>,
}

/// One run, with everything that determines it.
#[derive(Clone, Debug)]
pub struct Trial<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The network that the seed has drawn, with the batch's overrides.
    pub network: &'a Network,
    /// The scheme under test, with its parameters.
    pub scheme: &'a str,
    /// Length, warm-up, seed, grid.
    pub options: Options,
    /// The store with its traces.
    pub traces: &'a TraceStore,
    /// The recordings to make of it.
    pub recording: Option<Recording<'a>>,
}

/// The recordings to make of a run, and their names.
#[derive(Clone, Debug)]
pub struct Recording<'a> {
    /// The kinds of recordings.
    pub wanted: &'a Recordings,
    /// The beginning of the files' names.
    pub stem: PathBuf,
    /// A description of the run, in words.
    pub title: String,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    /// The run's result; `None` if it was stopped on the way.
    pub outcome: Result<Option<Outcome>, RunError>,
    /// The recordings, however the run ended.
    pub recorded: Option<Recorded>,
}

impl Ended {
    /// A run that failed, without recordings.
    pub fn failed(error: RunError) -> Ended {
        Ended {
            outcome: Err(error),
            recorded: None,
        }
    }
}

/// Why a run is not possible, or cannot go on. It displays as one line.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RunError {
    /// The run cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The run failed on the way, or its world is not available here.
    #[error("{0}")]
    Failed(String),
}

impl RunError {
    /// Why this world or the scenario's routers cannot serve the scheme, if this is such an error.
    pub fn unserved(&self) -> Option<String> {
        match self {
            RunError::Setup(error) => error.unserved(),
            RunError::Failed(_) => None,
        }
    }
}
