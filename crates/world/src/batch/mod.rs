//! Batches of many runs, several at a time; the number at a time does not change the results.

mod options;
mod progress;
mod results;
mod take_over;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use headway_cc::{Duration, SchemeError, Stream, members};
use headway_scenario::{Network, Scenario, TraceStore};
use rayon::prelude::*;

pub use options::{BatchError, BatchOptions};
pub use progress::Progress;
pub use results::{Finished, RecordingRow};

use crate::{Ended, Options, Outcome, Recorded, Recording, RunError, Trial, World};

/// A scheme that a scenario cannot serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The scenario's name.
    pub scenario: String,
    /// The scheme, with its parameters.
    pub scheme: String,
    /// The reason, and what would be right.
    pub why: String,
}

/// Runs of schemes over scenarios. All are checked before the first one runs.
#[derive(Debug)]
pub struct Batch {
    world: Arc<dyn World>,
    scenarios: Vec<Scenario>,
    /// The schemes as the user wrote them; tables name rows after them.
    schemes: Vec<String>,
    /// For each scheme, one spec for each of its models, which take turns from run to run.
    members: Vec<Vec<String>>,
    traces: TraceStore,
    options: BatchOptions,
    tasks: Vec<Task>,
    left_out: Vec<LeftOut>,
    /// The approximate memory of all runs' results, in bytes, and the most that the active runs
    /// need.
    kept_bytes: u64,
    run_bytes: u64,
    outcomes: Vec<OnceLock<Outcome>>,
    /// Outcomes of an earlier batch, by task, that are kept until the run that is to be recorded
    /// has run again.
    earlier: OnceLock<HashMap<usize, Outcome>>,
    recorded: Vec<OnceLock<Recorded>>,
    progress: Progress,
    failure: Mutex<Option<(usize, BatchError)>>,
}

/// Measured sizes in bytes, including statistics and reports: of a row of results, of a bin of a
/// series, and of a flow in an active run.
const ROW_BYTES: u64 = 1_250;
const BIN_BYTES: u64 = 1_000;
const FLOW_BYTES: u64 = 150_000;

/// The seed of a run. The first run has the batch's seed, so that any run can be repeated alone;
/// the others have seeds that no other batch has. A seed is positive as an i64, which files store.
fn run_seed(seed: u64, run: u32) -> u64 {
    match run {
        0 => seed,
        _ => Stream::new(seed, &format!("run.{run}")).bits() >> 1,
    }
}

#[derive(Clone, Copy, Debug)]
struct Task {
    scenario: usize,
    scheme: usize,
    run: u32,
}

impl Task {
    /// Is this the first run of its scheme and scenario? Its time series is kept, and it is
    /// recorded.
    fn is_first(self) -> bool {
        self.run == 0
    }
}

impl Batch {
    /// Checks scenarios, schemes, traces and options by a first run of each pair.
    ///
    /// # Errors
    /// [`BatchError`]
    pub fn new(
        world: Arc<dyn World>,
        scenarios: Vec<Scenario>,
        schemes: &[String],
        options: BatchOptions,
    ) -> Result<Batch, BatchError> {
        let of_each: Vec<Vec<String>> = schemes.iter().map(|scheme| members(scheme)).collect();
        for member in of_each.iter().flatten() {
            world.canonical(member)?;
        }
        options.check()?;
        let traces = TraceStore::new(options.trace_dirs.clone());
        let mut batch = Batch {
            world,
            scenarios,
            schemes: schemes.to_vec(),
            members: of_each,
            traces,
            options,
            tasks: Vec::new(),
            left_out: Vec::new(),
            kept_bytes: 0,
            run_bytes: 0,
            outcomes: Vec::new(),
            earlier: OnceLock::new(),
            recorded: Vec::new(),
            progress: Progress::default(),
            failure: Mutex::new(None),
        };
        for scenario in 0..batch.scenarios.len() {
            batch.add_scenario(scenario)?;
        }
        batch.outcomes.resize_with(batch.tasks.len(), OnceLock::new);
        batch.recorded.resize_with(batch.tasks.len(), OnceLock::new);
        Ok(batch)
    }

    /// Checks a scenario with each scheme, and adds their runs.
    fn add_scenario(&mut self, index: usize) -> Result<(), BatchError> {
        let scenario = &self.scenarios[index];
        let name = || scenario.name().to_owned();
        self.options.check_length(scenario)?;
        for trace in scenario.trace_specs() {
            let loaded = scenario.load_trace(&trace, &self.traces);
            loaded.map_err(|source| BatchError::Trace {
                scenario: name(),
                source,
            })?;
        }
        let varies = !scenario.varies().is_empty() || !self.world.is_deterministic();
        let network = self.network(scenario, 0);
        let flows = network.flows.len() as u64;
        let duration = self.options.duration(scenario);
        let bin = self.options.bin(&network, duration);
        let bins = bin.map_or(0, |bin| duration.as_nanos() / bin.as_nanos());
        let series = (flows + 1) * bins * BIN_BYTES;
        self.run_bytes = self.run_bytes.max(flows * FLOW_BYTES);
        for (scheme, spec) in self.schemes.iter().enumerate() {
            let task = |run| Task {
                scenario: index,
                scheme,
                run,
            };
            let models = self.members[scheme].len() as u32;
            let check = |run| self.world.check(&self.trial(task(run), &network));
            let Err(source) = (0..models).try_for_each(check) else {
                let runs = if varies { self.options.runs } else { models };
                self.tasks.extend((0..runs).map(task));
                self.kept_bytes += u64::from(runs) * (flows + 1) * ROW_BYTES + series;
                continue;
            };
            match source.unserved().filter(|_| self.options.leave_out) {
                Some(why) => self.left_out.push(LeftOut {
                    scenario: name(),
                    scheme: spec.clone(),
                    why,
                }),
                None => {
                    return Err(BatchError::Run {
                        scenario: name(),
                        source,
                    });
                }
            }
        }
        Ok(())
    }

    /// The network of a run.
    fn network(&self, scenario: &Scenario, run: u32) -> Network {
        let seed = run_seed(self.options.seed, run);
        let mut network = scenario.draw_for(seed, self.options.duration(scenario));
        if let Some(transport) = self.options.transport {
            network.transport = transport;
        }
        network
    }

    /// The scheme under test, with the model of this run.
    fn scheme_of(&self, task: Task) -> &str {
        let members = &self.members[task.scheme];
        &members[task.run as usize % members.len()]
    }

    fn trial<'a>(&'a self, task: Task, network: &'a Network) -> Trial<'a> {
        let (scenario, run) = (&self.scenarios[task.scenario], task.run);
        let scheme = self.scheme_of(task);
        let recordings = self.options.recordings.as_ref();
        let duration = self.options.duration(scenario);
        Trial {
            scenario,
            network,
            scheme,
            options: Options {
                duration,
                warmup: self.options.warmup,
                seed: run_seed(self.options.seed, run),
                grid: (self.options.bin(network, duration)).filter(|_| task.is_first()),
            },
            traces: &self.traces,
            recording: recordings
                .filter(|_| task.is_first())
                .map(|wanted| Recording {
                    wanted,
                    stem: wanted.stem(scenario.name(), scheme, run),
                    title: format!("{}, {scheme}, run {run}", scenario.name()),
                }),
        }
    }

    /// The schemes that scenarios cannot serve, by scenario and in the order of the schemes.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// How many runs there are.
    pub fn total_runs(&self) -> usize {
        self.tasks.len()
    }

    /// Seconds of all runs together, by the runs' own clocks.
    pub fn total_s(&self) -> f64 {
        self.tasks
            .iter()
            .map(|t| &self.scenarios[t.scenario])
            .map(|s| self.options.duration(s).as_secs_f64())
            .sum()
    }

    /// The approximate memory of the whole batch, in bytes.
    pub fn memory(&self) -> u64 {
        let jobs = self.options.jobs.or(self.world.default_jobs());
        let jobs =
            jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        self.kept_bytes + jobs.min(self.tasks.len()) as u64 * self.run_bytes
    }

    /// A handle that shows the progress, and can cancel the batch.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Runs everything that is not finished yet. Returns when all runs are finished, or the batch
    /// is cancelled.
    ///
    /// # Errors
    /// The first failure, in the order of runs; the other runs are finished all the same.
    pub fn run(&self) -> Result<(), BatchError> {
        let jobs = self.options.jobs.or(self.world.default_jobs());
        let is_missing = |&i: &usize| self.outcomes[i].get().is_none();
        let missing: Vec<usize> = (0..self.tasks.len()).filter(is_missing).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(jobs.map_or(0, |jobs| jobs.min(missing.len())))
            .build()
            .map_err(|e| BatchError::Options(format!("cannot start threads: {e}")))?;
        pool.install(|| {
            // Each thread takes one task at a time: runs differ much in length.
            missing.into_par_iter().with_max_len(1).for_each(|i| {
                if !self.progress.is_cancelled() {
                    self.run_task(i);
                }
            });
        });
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take().map_or(Ok(()), |(_, error)| Err(error))
    }

    fn run_task(&self, index: usize) {
        let result =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.carry_out(index)));
        let task = self.tasks[index];
        let scenario = self.scenarios[task.scenario].name().to_owned();
        let error = match result {
            Ok(Ok(Some(outcome))) => {
                self.outcomes[index].get_or_init(|| outcome);
                self.progress.finish_one();
                return;
            }
            Ok(Ok(None)) => return,
            Ok(Err(source)) => BatchError::Run { scenario, source },
            // The scheme's own code caused it, such as a user's Python.
            Err(panic) if panic.is::<SchemeError>() => {
                let why = panic.downcast::<SchemeError>().map(|error| error.0);
                let scheme = &self.schemes[task.scheme];
                let message = format!("scheme '{scheme}': {}", why.unwrap_or_default());
                BatchError::Run {
                    scenario,
                    source: RunError::Failed(message),
                }
            }
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let message = text
                    .or(panic.downcast_ref::<&str>().copied())
                    .unwrap_or("it panicked")
                    .to_owned();
                BatchError::Panic {
                    scenario,
                    scheme: self.schemes[task.scheme].clone(),
                    run: task.run,
                    message,
                }
            }
        };
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.as_ref().is_none_or(|(first, _)| index < *first) {
            *failure = Some((index, error));
        }
    }

    /// Returns `None` if it was cancelled on the way.
    fn carry_out(&self, index: usize) -> Result<Option<Outcome>, RunError> {
        let task = self.tasks[index];
        let network = self.network(&self.scenarios[task.scenario], task.run);
        let mut go_on = |done: Duration| self.progress.go_on(done);
        let Ended { outcome, recorded } = self.world.run(&self.trial(task, &network), &mut go_on);
        if let Some(mut recorded) = recorded {
            if matches!(outcome, Ok(Some(_))) {
                recorded.keep();
            }
            self.recorded[index].get_or_init(|| recorded);
        }
        outcome
    }
}
