//! A world: a place where a scenario's runs are carried out.

use std::fmt::Debug;
use std::path::PathBuf;

use headway_cc::{Duration, Scheme, SchemeError};
use headway_scenario::{Network, Scenario, TraceStore};

use crate::{Outcome, Recorded, Recordings, SetupError};

/// A place where runs are carried out.
pub trait World: Debug + Send + Sync {
    /// Its name, and what it supplies.
    fn about(&self) -> headway_cc::World;

    /// The scheme's one spelling in this world: two specs with the same are the same scheme.
    ///
    /// # Errors
    /// [`SchemeError`] if there is no such scheme, or no such parameter.
    fn canonical(&self, scheme: &str) -> Result<String, SchemeError>;

    /// Can it run the scheme at all, on some scenario and some machine?
    fn serves(&self, scheme: &Scheme) -> bool {
        self.about().lacks(scheme).is_none()
    }

    /// Runs at a time unless told otherwise; `None` for one a core.
    fn default_jobs(&self) -> Option<usize> {
        None
    }

    /// Is a run that is told the same the same to the bit? Else it is repeated also where the seed
    /// varies nothing.
    fn is_deterministic(&self) -> bool {
        true
    }

    /// Can such a run be had? Asked for each scenario and scheme before anything runs.
    ///
    /// # Errors
    /// [`RunError`]
    fn check(&self, trial: &Trial<'_>) -> Result<(), RunError>;

    /// Carries a run out. `go_on` is told now and then how much more time of the run is done, and
    /// says whether to go on.
    fn run(&self, trial: &Trial<'_>, go_on: &mut dyn FnMut(Duration) -> bool) -> Ended;
}

/// What a run is told beyond its network.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long it lasts.
    pub duration: Duration,
    /// How much of its beginning the metrics leave out.
    pub warmup: Duration,
    /// Seeds every random draw of the run.
    pub seed: u64,
    /// The bins of the time series, if they were asked for.
    pub grid: Option<Duration>,
}

/// One run: everything that decides it.
#[derive(Clone, Debug)]
pub struct Trial<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// What its seed has drawn, with whatever the batch overrides.
    pub network: &'a Network,
    /// The scheme under test, with its parameters.
    pub scheme: &'a str,
    /// Length, warm-up, seed, grid.
    pub options: Options,
    /// Where its traces are.
    pub traces: &'a TraceStore,
    /// What is to be written down of it.
    pub recording: Option<Recording<'a>>,
}

/// What is to be written down of a run, and under which name.
#[derive(Clone, Debug)]
pub struct Recording<'a> {
    /// Which kinds.
    pub wanted: &'a Recordings,
    /// What the names of its files begin with.
    pub stem: PathBuf,
    /// What was run, in words.
    pub title: String,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    /// What it gave; `None` if it was told to stop on the way.
    pub outcome: Result<Option<Outcome>, RunError>,
    /// What was written down of it, however it ended.
    pub recorded: Option<Recorded>,
}

impl Ended {
    /// Without anything to show.
    pub fn failed(error: RunError) -> Ended {
        Ended {
            outcome: Err(error),
            recorded: None,
        }
    }
}

/// Why a run cannot be had, or cannot go on. One line.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RunError {
    /// It cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// It failed on the way, or its world is not available here.
    #[error("{0}")]
    Failed(String),
}

impl RunError {
    /// Why this world or the scenario's routers cannot serve the scheme, if that is it.
    pub fn unserved(&self) -> Option<String> {
        match self {
            RunError::Setup(error) => error.unserved(),
            RunError::Failed(_) => None,
        }
    }
}
