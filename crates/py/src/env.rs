use std::sync::{Arc, Mutex, PoisonError};

use headway_cc::Duration;
use headway_env::{Autoreset, End, EnvError, EnvSpec, Episode, Outputs, Pause, Start, Task};
use headway_policy::{AgentSpec, Answer};
use headway_scenario::{Scenario, TraceStore};
use numpy::{
    PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1, PyReadwriteArray2, PyUntypedArrayMethods,
};
use pyo3::prelude::*;

use crate::schemes::registry;
use crate::{RunError, own_traces, usage};

/// Reads an agent's spec from JSON.
fn agent_of(json: &str) -> PyResult<AgentSpec> {
    let spec: AgentSpec = serde_json::from_str(json).map_err(|e| usage(format!("agent: {e}")))?;
    spec.check().map_err(|e| usage(format!("agent: {e}")))?;
    Ok(spec)
}

#[pyfunction]
pub(crate) fn check_agent(spec: &str) -> PyResult<(String, String)> {
    let spec = agent_of(spec)?;
    let json = serde_json::to_string(&spec).map_err(usage)?;
    Ok((json, spec.hash()))
}

#[pyfunction]
pub(crate) fn measurements() -> Vec<(&'static str, &'static str)> {
    headway_env::measurements()
        .map(|m| (m.name, m.help))
        .collect()
}

/// The ends of episodes: number and name.
#[pyfunction]
pub(crate) fn ends() -> Vec<(u8, &'static str)> {
    End::NAMES.map(|(end, name)| (end as u8, name)).to_vec()
}

/// A failure on the way, as a Python exception.
fn failure(error: EnvError) -> PyErr {
    match error {
        EnvError::Failed { .. } => RunError::new_err(error.to_string()),
        _ => usage(error),
    }
}

/// A length of time in units of which this many make a second.
fn duration(name: &str, value: f64, a_second: f64) -> PyResult<Duration> {
    let seconds = value / a_second;
    match (0.0..=1e6).contains(&seconds) {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err(usage(format!(
            "{name} is {value}, must be from 0 to {}",
            1e6 * a_second
        ))),
    }
}

const NO_COPY: &str = "a simulation under way cannot be copied or pickled; make another environment of its config and seed";

/// The definition of an environment: the attributes of `EnvConfig` in Python.
#[derive(FromPyObject)]
struct Config {
    agent_json: String,
    scenarios: Vec<(String, f64)>,
    steps: Option<u32>,
    seconds: Option<f64>,
    patience_s: f64,
    latency_ms: f64,
    initial_rate: Option<(f64, f64)>,
}

impl Config {
    fn spec(&self, py: Python<'_>) -> PyResult<EnvSpec> {
        let length = self.seconds.map(|s| duration("seconds", s, 1.0));
        let start = |(low, high)| Start::Capacity(low, high);
        Ok(EnvSpec {
            agent: Arc::new(agent_of(&self.agent_json)?),
            tasks: tasks(&self.scenarios)?,
            steps: self.steps,
            length: length.transpose()?,
            patience: duration("patience_s", self.patience_s, 1.0)?,
            latency: duration("latency_ms", self.latency_ms, 1e3)?,
            start: self.initial_rate.map_or(Start::Spec, start),
            registry: registry(),
            traces: TraceStore::new([own_traces(py)?]).for_training(),
        })
    }
}

#[pyclass(frozen, module = "headway._native")]
pub(crate) struct Environments {
    inner: Mutex<headway_env::Environments>,
    count: usize,
    observation: usize,
    /// The number of values in an answer.
    answers: usize,
}

#[pymethods]
impl Environments {
    #[new]
    #[pyo3(signature = (config, count, *, seed=1, threads=None))]
    fn new(
        py: Python<'_>,
        config: Config,
        count: usize,
        seed: u64,
        threads: Option<usize>,
    ) -> PyResult<Environments> {
        let spec = config.spec(py)?;
        let (observation, answers) = (spec.agent.observation.len(), spec.agent.answers());
        let made = py.detach(|| {
            spec.check()?;
            headway_env::Environments::new(Arc::new(spec), count, seed, threads)
        });
        Ok(Environments {
            inner: Mutex::new(made.map_err(failure)?),
            count,
            observation,
            answers,
        })
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(usage(NO_COPY))
    }

    #[pyo3(signature = (which, observations, seeds=None))]
    fn reset(
        &self,
        py: Python<'_>,
        which: PyReadonlyArray1<'_, bool>,
        mut observations: PyReadwriteArray2<'_, f32>,
        seeds: Option<Vec<(u64, u64)>>,
    ) -> PyResult<()> {
        check(
            "observations",
            observations.shape(),
            &[self.count, self.observation],
        )?;
        check("which", which.shape(), &[self.count])?;
        let (which, observations) = (which.as_slice()?, observations.as_slice_mut()?);
        let reset = || {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            for (i, (seed, index)) in seeds.into_iter().flatten().enumerate().take(self.count) {
                if which[i] {
                    inner.seed(i, seed, index);
                }
            }
            inner.reset(which, observations)
        };
        py.detach(reset).map_err(failure)
    }

    #[allow(clippy::too_many_arguments)] // the arrays that a step fills
    fn step(
        &self,
        py: Python<'_>,
        answers: PyReadonlyArray2<'_, f32>,
        mut observations: PyReadwriteArray2<'_, f32>,
        mut final_observations: PyReadwriteArray2<'_, f32>,
        mut measurements: PyReadwriteArray2<'_, f64>,
        mut ends: PyReadwriteArray1<'_, u8>,
        autoreset: &str,
    ) -> PyResult<()> {
        let seen = [self.count, self.observation];
        check("answers", answers.shape(), &[self.count, self.answers])?;
        check("observations", observations.shape(), &seen)?;
        check("final_observations", final_observations.shape(), &seen)?;
        let measured = [self.count, headway_env::width()];
        check("measurements", measurements.shape(), &measured)?;
        check("ends", ends.shape(), &[self.count])?;
        let answers = answers.as_slice()?;
        let autoreset = autoreset_of(autoreset)?;
        let outputs = Outputs {
            observations: observations.as_slice_mut()?,
            final_observations: final_observations.as_slice_mut()?,
            measurements: measurements.as_slice_mut()?,
            ends: ends.as_slice_mut()?,
        };
        let step = || {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.step(answers, outputs, autoreset)
        };
        py.detach(step).map_err(failure)
    }

    fn episode(&self, environment: usize) -> PyResult<Option<(String, u64)>> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if environment >= self.count {
            return Err(usage(format!("there is no environment {environment}")));
        }
        let episode = inner.episode(environment);
        Ok(episode.map(|(scenario, seed)| (scenario.to_owned(), seed)))
    }

    fn failure(&self, environment: usize) -> PyResult<Option<String>> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if environment >= self.count {
            return Err(usage(format!("there is no environment {environment}")));
        }
        Ok(inner.failure(environment).map(ToString::to_string))
    }

    #[getter]
    fn packets(&self) -> u64 {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.packets()
    }
}

/// Reads the value of Gymnasium's `AutoresetMode`.
fn autoreset_of(name: &str) -> PyResult<Autoreset> {
    match name {
        "Disabled" => Ok(Autoreset::Disabled),
        "SameStep" => Ok(Autoreset::SameStep),
        "NextStep" => Ok(Autoreset::NextStep),
        _ => Err(usage(format!(
            "autoreset_mode: '{name}' is unknown, must be NextStep, SameStep or Disabled"
        ))),
    }
}

/// Checks the shape of an array.
fn check(name: &str, shape: &[usize], wanted: &[usize]) -> PyResult<()> {
    match shape == wanted {
        true => Ok(()),
        false => Err(usage(format!(
            "{name}: the shape is {shape:?}, must be {wanted:?}"
        ))),
    }
}

/// The scenarios by name with their weights; the members of a family share its weight.
fn tasks(scenarios: &[(String, f64)]) -> PyResult<Vec<Task>> {
    let mut tasks = Vec::new();
    for (name, weight) in scenarios {
        let members = Scenario::load_all(name).map_err(usage)?;
        let weight = weight / members.len() as f64;
        tasks.extend(
            members
                .into_iter()
                .map(|scenario| Task { scenario, weight }),
        );
    }
    Ok(tasks)
}

/// One simulation of several learning flows.
#[pyclass(frozen, module = "headway._native")]
pub(crate) struct Flows {
    spec: EnvSpec,
    episode: Mutex<Option<Episode>>,
    count: usize,
}

#[pymethods]
impl Flows {
    #[new]
    fn new(py: Python<'_>, config: Config) -> PyResult<Flows> {
        let spec = config.spec(py)?;
        spec.check().map_err(failure)?;
        Ok(Flows {
            count: spec.places().map_err(failure)?,
            episode: Mutex::new(None),
            spec,
        })
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(usage(NO_COPY))
    }

    #[getter]
    fn count(&self) -> usize {
        self.count
    }

    fn reset(&self, py: Python<'_>, seed: u64) -> PyResult<()> {
        let episode = py.detach(|| Episode::new(&self.spec, seed));
        *self.lock() = Some(episode.map_err(failure)?);
        Ok(())
    }

    fn advance(&self, py: Python<'_>) -> PyResult<u8> {
        let advance = || {
            let mut guard = self.lock();
            guard.as_mut().map(|episode| {
                episode.resume();
                episode.advance()
            })
        };
        match py.detach(advance).ok_or_else(no_episode)? {
            Pause::Decision => Ok(0),
            Pause::End(end) => Ok(end as u8),
        }
    }

    fn failure(&self) -> Option<String> {
        let guard = self.lock();
        Some(guard.as_ref()?.failure()?.to_string())
    }

    fn waiting(&self) -> PyResult<Vec<usize>> {
        let guard = self.lock();
        let episode = guard.as_ref().ok_or_else(no_episode)?;
        let waiting = episode.waiting().iter();
        Ok(waiting.map(|&learner| episode.place(learner)).collect())
    }

    fn present(&self) -> PyResult<Vec<usize>> {
        let guard = self.lock();
        let episode = guard.as_ref().ok_or_else(no_episode)?;
        let is_there = |&place: &usize| episode.present(place).is_some();
        Ok((0..self.count).filter(is_there).collect())
    }

    #[pyo3(signature = (flow, action, interval=None))]
    fn answer(&self, flow: usize, action: f32, interval: Option<f32>) -> PyResult<()> {
        let mut guard = self.lock();
        let episode = guard.as_mut().ok_or_else(no_episode)?;
        let mut waiting = episode.waiting().iter();
        let Some(&learner) = waiting.find(|&&learner| episode.place(learner) == flow) else {
            return Err(usage(format!("flow {flow} does not wait for an answer")));
        };
        episode.answer(learner, Answer { action, interval });
        Ok(())
    }

    fn read(
        &self,
        flow: usize,
        mut observation: PyReadwriteArray1<'_, f32>,
        mut measurements: PyReadwriteArray1<'_, f64>,
    ) -> PyResult<()> {
        let mut guard = self.lock();
        let episode = guard.as_mut().ok_or_else(no_episode)?;
        let width = self.spec.agent.observation.len();
        if flow >= self.count {
            return Err(usage(format!("there is no flow {flow}")));
        }
        check("observation", observation.shape(), &[width])?;
        check(
            "measurements",
            measurements.shape(),
            &[headway_env::width()],
        )?;
        let Some(learner) = episode.present(flow) else {
            return Err(usage(format!("flow {flow} is not there")));
        };
        let seen = episode.observation(learner);
        observation.as_slice_mut()?.copy_from_slice(seen);
        episode.measure(learner, measurements.as_slice_mut()?);
        Ok(())
    }
}

impl Flows {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Episode>> {
        self.episode.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_episode() -> PyErr {
    usage("reset before the first step")
}
