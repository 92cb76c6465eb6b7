//! The definition of an environment: an agent, its scenarios, and when an episode ends.

use std::sync::Arc;

use headway_cc::{Duration, Registry, Stream};
use headway_policy::{AgentSpec, BaseSpec, SpecError};
use headway_scenario::{Network, RateSpec, Scenario, TraceStore};
use headway_sim::SimulationError;

use crate::Episode;

/// Checks that training may use the scenario.
///
/// # Errors
/// [`EnvError::Usage`] if it is held out.
pub(crate) fn may_train(scenario: &Scenario) -> Result<(), EnvError> {
    if scenario.may_train() {
        return Ok(());
    }
    let name = scenario.name();
    Err(EnvError::Usage(format!(
        "scenario '{name}': it is held out (training = false); name another"
    )))
}

/// The definition of an environment. All episodes share it.
#[derive(Debug)]
pub struct EnvSpec {
    /// The observations and actions of the learning flows.
    pub agent: Arc<AgentSpec>,
    /// The scenarios, one of which is drawn for each episode. Their flows without a scheme learn.
    pub tasks: Vec<Task>,
    /// An episode is cut off after this number of answers of a flow; `None` for no limit.
    pub steps: Option<u32>,
    /// The length of an episode; `None` uses each scenario's own.
    pub length: Option<Duration>,
    /// An episode is cut off if no flow had to decide for this time.
    pub patience: Duration,
    /// The delay until an answer takes effect.
    pub latency: Duration,
    /// The first sending rate; only for an agent that steers a rate.
    pub start: Start,
    /// The schemes that scenarios may name.
    pub registry: Registry,
    /// The store of traces.
    pub traces: TraceStore,
}

/// A scenario, and how often it is drawn.
#[derive(Clone, Debug)]
pub struct Task {
    /// The scenario.
    pub scenario: Scenario,
    /// The scenario's share of the episodes, relative to the sum of all weights.
    pub weight: f64,
}

/// The first rate of an agent that steers a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Start {
    /// The rate of the agent's spec.
    Spec,
    /// A rate drawn uniformly, as a multiple of the rate of the slowest link that data crosses; it
    /// stays within the agent's limits.
    Capacity(f64, f64),
}

/// Why an environment is not possible, or an episode cannot go on. One line for the user.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EnvError {
    /// The input is wrong.
    #[error("{0}")]
    Usage(String),
    /// The agent's spec is wrong.
    #[error("agent: {0}")]
    Agent(#[from] SpecError),
    /// A scenario cannot be run.
    #[error("scenario '{scenario}': {error}")]
    Scenario {
        /// The scenario's name.
        scenario: String,
        /// The cause.
        error: SimulationError,
    },
    /// An episode failed on its way.
    #[error("scenario '{scenario}', episode seed {seed}: {error}")]
    Failed {
        /// The scenario's name.
        scenario: String,
        /// The episode's seed.
        seed: u64,
        /// The cause.
        error: SimulationError,
    },
}

impl EnvSpec {
    /// Checks that every scenario can be run, each once with one seed.
    ///
    /// # Errors
    /// [`EnvError`]
    pub fn check(&self) -> Result<(), EnvError> {
        self.agent.check()?;
        if self.tasks.is_empty() {
            return Err(EnvError::Usage(
                "scenarios: an environment needs at least one".to_owned(),
            ));
        }
        let weights = || self.tasks.iter().map(|t| t.weight);
        if !weights().all(|w| w.is_finite() && w >= 0.0) || weights().sum::<f64>() <= 0.0 {
            return Err(EnvError::Usage(
                "scenarios: weights must be 0 or more, and not all 0".to_owned(),
            ));
        }
        if self.steps == Some(0) || self.length.is_some_and(Duration::is_zero) {
            return Err(EnvError::Usage(
                "an episode must have steps, and a length above 0".to_owned(),
            ));
        }
        if self.patience.is_zero() {
            return Err(EnvError::Usage("patience must be above 0".to_owned()));
        }
        self.check_start()?;
        for task in &self.tasks {
            let (name, longest) = (task.scenario.name(), task.scenario.longest());
            may_train(&task.scenario)?;
            if self.length_of(&task.scenario) > longest {
                return Err(EnvError::Usage(format!(
                    "scenario '{name}': an episode of it lasts at most {longest:?}"
                )));
            }
            Episode::of(self, &task.scenario, 1)?;
        }
        Ok(())
    }

    /// The number of learning flows in every scenario.
    ///
    /// # Errors
    /// [`EnvError::Usage`] if scenarios differ in it.
    pub fn learners(&self) -> Result<usize, EnvError> {
        let mut found: Option<(usize, &str)> = None;
        for task in &self.tasks {
            let learners = Episode::of(self, &task.scenario, 1)?.places();
            let (first, name) = *found.get_or_insert((learners, task.scenario.name()));
            if learners != first {
                return Err(EnvError::Usage(format!(
                    "scenario '{}': {learners} flows learn, but {first} in '{name}'; the number must be the same in all scenarios",
                    task.scenario.name()
                )));
            }
        }
        Ok(found.map_or(0, |(learners, _)| learners))
    }

    /// The number of learning flows in the scenario that has most.
    ///
    /// # Errors
    /// [`EnvError::Scenario`]
    pub fn places(&self) -> Result<usize, EnvError> {
        let places = |task: &Task| Ok(Episode::of(self, &task.scenario, 1)?.places());
        let each = self.tasks.iter().map(places);
        Ok(each
            .collect::<Result<Vec<_>, EnvError>>()?
            .into_iter()
            .max()
            .unwrap_or(0))
    }

    fn check_start(&self) -> Result<(), EnvError> {
        let Start::Capacity(low, high) = self.start else {
            return Ok(());
        };
        let wrong = match &self.agent.base {
            BaseSpec::Rate { .. } if 0.0 < low && low <= high && high <= 1000.0 => return Ok(()),
            BaseSpec::Rate { .. } => {
                format!(
                    "initial_rate is [{low}, {high}], must be from low to high, above 0, at most 1000"
                )
            }
            BaseSpec::Scheme { .. } => {
                "initial_rate is for an agent whose base controller is a rate".to_owned()
            }
        };
        Err(EnvError::Usage(wrong))
    }

    /// The longest time that an episode of this scenario lasts.
    pub(crate) fn length_of(&self, scenario: &Scenario) -> Duration {
        self.length
            .unwrap_or_else(|| Duration::from_secs_f64(scenario.seconds()))
    }

    /// The scenario of the episode `seed`.
    pub(crate) fn task(&self, seed: u64) -> &Scenario {
        let total: f64 = self.tasks.iter().map(|t| t.weight).sum();
        let mut left = Stream::new(seed, "episode.scenario").range(0.0, total);
        for task in &self.tasks {
            if left < task.weight {
                return &task.scenario;
            }
            left -= task.weight;
        }
        // The sum was rounded, so this is the last scenario that can be drawn.
        let last = self.tasks.iter().rev().find(|t| t.weight > 0.0);
        &last.unwrap_or(&self.tasks[0]).scenario
    }

    /// The agent of the episode `seed`, with its first rate.
    pub(crate) fn agent(&self, seed: u64, path_mbps: f64) -> Arc<AgentSpec> {
        let (Start::Capacity(low, high), true) = (self.start, path_mbps.is_finite()) else {
            return Arc::clone(&self.agent);
        };
        let mut agent = AgentSpec::clone(&self.agent);
        if let BaseSpec::Rate {
            initial_mbps,
            min_mbps,
            max_mbps,
        } = &mut agent.base
        {
            let times = Stream::new(seed, "episode.initial_rate").range(low, high);
            *initial_mbps = (times * path_mbps).clamp(*min_mbps, *max_mbps);
        }
        Arc::new(agent)
    }

    /// The mean rate of this link, if it has one.
    pub(crate) fn mean_mbps(&self, network: &Network, link: u32) -> Option<f64> {
        match &network.links[link as usize].rate {
            RateSpec::Unlimited => None,
            RateSpec::Fixed(rate) => Some(rate.as_mbps()),
            RateSpec::Trace { trace, .. } => match trace.mean {
                Some(mean) => Some(mean.as_mbps()),
                None => self.traces.load_spec(trace).ok().map(|t| t.mean_mbps()),
            },
        }
    }
}
