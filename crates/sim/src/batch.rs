//! Many runs on all cores, the same results on any number of them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use headway_cc::{Duration, Registry, SchemeError, Selection, Stream};
use headway_record::{Row, SeriesRow};
use headway_scenario::{Network, Scenario, StoreError, TraceSpec, TraceStore};
use rayon::prelude::*;

use crate::links::router_of_schemes;
use crate::recorder::{Recorded, Recorder};
use crate::{Observer, Options, Outcome, Recordings, Simulation, SimulationError};

/// What a batch is told.
#[derive(Clone, Debug)]
pub struct BatchOptions {
    /// Runs of each scheme in each scenario whose seed varies something; others run once.
    pub runs: u32,
    /// How long a run lasts; `None` takes each scenario's own.
    pub duration: Option<Duration>,
    /// How much of a run's beginning the metrics leave out.
    pub warmup: Duration,
    /// The first run's seed; the others' are drawn from it.
    pub seed: u64,
    /// Threads; `None` takes one a core.
    pub jobs: Option<usize>,
    /// Bins of the time series, kept for the first run of each scheme and scenario.
    pub grid: Option<Duration>,
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
    Simulation {
        /// The scenario.
        scenario: String,
        /// Why not.
        source: SimulationError,
    },
    /// The options contradict each other.
    #[error("{0}")]
    Options(String),
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

/// A scheme that a scenario cannot serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The scenario's name.
    pub scenario: String,
    /// The scheme, with its parameters.
    pub scheme: String,
    /// Why not.
    pub why: String,
}

/// Runs of schemes over scenarios, checked before anything runs.
#[derive(Debug)]
pub struct Batch {
    scenarios: Vec<Scenario>,
    schemes: Vec<Selection>,
    registry: Registry,
    traces: TraceStore,
    options: BatchOptions,
    tasks: Vec<Task>,
    left_out: Vec<LeftOut>,
    outcomes: Vec<OnceLock<Outcome>>,
    recorded: Vec<OnceLock<Recorded>>,
    progress: Progress,
    failure: Mutex<Option<(usize, BatchError)>>,
}

/// The seed of a run: the batch's own for the first, so that any run can be repeated alone, and
/// one that no other batch has for the others. Positive as an i64, which files keep.
fn run_seed(seed: u64, run: u32) -> u64 {
    match run {
        0 => seed,
        _ => Stream::new(seed, &format!("run.{run}")).bits() >> 1,
    }
}

/// A file of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingRow {
    /// The scenario's name.
    pub scenario: String,
    /// The scheme under test, with its parameters.
    pub scheme: String,
    /// Which run, from 0.
    pub run: u32,
    /// The file.
    pub path: PathBuf,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    scenario: usize,
    scheme: usize,
    run: u32,
}

/// How far a batch is; shared with whoever watches.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    finished: AtomicUsize,
    simulated_ns: AtomicU64,
    cancelled: AtomicBool,
}

impl Progress {
    /// Runs finished.
    pub fn finished(&self) -> usize {
        self.0.finished.load(Ordering::Relaxed)
    }

    /// Simulated seconds done, over all runs.
    pub fn simulated_s(&self) -> f64 {
        self.0.simulated_ns.load(Ordering::Relaxed) as f64 / 1e9
    }

    /// Asks the batch to stop soon; what is finished stays.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }
}

impl Batch {
    /// How long a run may last: eleven days, so that a slip of the keyboard does not run for ever.
    const LONGEST: Duration = Duration::from_secs(1_000_000);
    /// More runs than this are a slip too.
    const MOST_RUNS: u32 = 1_000_000;
    /// How often a run looks whether it is to stop, in simulated time.
    const STEP: Duration = Duration::from_millis(10);
    /// More threads than this likewise.
    const MOST_JOBS: usize = 1024;

    /// Checks scenarios, schemes, traces and options by setting up one run of each pair.
    ///
    /// # Errors
    /// [`BatchError`]
    pub fn new(
        scenarios: Vec<Scenario>,
        schemes: &[String],
        registry: Registry,
        options: BatchOptions,
    ) -> Result<Batch, BatchError> {
        let schemes = schemes
            .iter()
            .map(|s| registry.select(s))
            .collect::<Result<Vec<_>, _>>()?;
        let traces = TraceStore::new(options.trace_dirs.clone());
        let mut batch = Batch {
            scenarios,
            schemes,
            registry,
            traces,
            options,
            tasks: Vec::new(),
            left_out: Vec::new(),
            outcomes: Vec::new(),
            recorded: Vec::new(),
            progress: Progress::default(),
            failure: Mutex::new(None),
        };
        let unserved = batch.check()?;
        for scenario in 0..batch.scenarios.len() {
            let runs = if batch.scenarios[scenario].varies().is_empty() {
                1
            } else {
                batch.options.runs
            };
            for scheme in 0..batch.schemes.len() {
                if let Some((.., why)) = unserved.iter().find(|u| (u.0, u.1) == (scenario, scheme))
                {
                    batch.left_out.push(LeftOut {
                        scenario: batch.scenarios[scenario].name().to_owned(),
                        scheme: batch.schemes[scheme].spec.clone(),
                        why: why.clone(),
                    });
                    continue;
                }
                batch.tasks.extend((0..runs).map(|run| Task {
                    scenario,
                    scheme,
                    run,
                }));
            }
        }
        batch.outcomes.resize_with(batch.tasks.len(), OnceLock::new);
        batch.recorded.resize_with(batch.tasks.len(), OnceLock::new);
        Ok(batch)
    }

    /// Returns which schemes which scenarios cannot serve, by their indices, and why.
    fn check(&self) -> Result<Vec<(usize, usize, String)>, BatchError> {
        let options = &self.options;
        let mut unserved = Vec::new();
        if !(1..=Self::MOST_RUNS).contains(&options.runs) {
            let message = format!("runs must be from 1 to {}", Self::MOST_RUNS);
            return Err(BatchError::Options(message));
        }
        if options
            .jobs
            .is_some_and(|jobs| !(1..=Self::MOST_JOBS).contains(&jobs))
        {
            let message = format!("jobs must be from 1 to {}", Self::MOST_JOBS);
            return Err(BatchError::Options(message));
        }
        for (i, scenario) in self.scenarios.iter().enumerate() {
            let duration = self.duration(scenario);
            if duration > Self::LONGEST {
                let message = format!("seconds must be at most {}", Self::LONGEST.as_secs_f64());
                return Err(BatchError::Options(message));
            }
            if duration > scenario.longest() {
                let message = format!(
                    "seconds must be at most {} for scenario '{}', whose random events would not fit in memory",
                    scenario.longest().as_secs_f64().floor(),
                    scenario.name()
                );
                return Err(BatchError::Options(message));
            }
            let swept = scenario.sweep().map(|s| s.key.as_str());
            if options.duration.is_some() && swept == Some("seconds") {
                let message = format!(
                    "scenario '{}' says itself how long it lasts, since that is what its family sweeps; leave --seconds out",
                    scenario.name()
                );
                return Err(BatchError::Options(message));
            }
            if options.warmup >= duration {
                let message = format!(
                    "warmup ({} s) must be less than seconds ({})",
                    options.warmup.as_secs_f64(),
                    duration.as_secs_f64()
                );
                return Err(BatchError::Options(message));
            }
            for trace in scenario.trace_specs() {
                let named = |source| BatchError::Trace {
                    scenario: scenario.name().to_owned(),
                    source,
                };
                self.traces.load_spec(&trace).map_err(named)?;
            }
            let network = self.network(scenario, 0);
            for (j, scheme) in self.schemes.iter().enumerate() {
                let Err(source) = self.simulation(&network, scenario, scheme, 0, ()) else {
                    continue;
                };
                match source.unserved().filter(|_| options.leave_out) {
                    Some(why) => unserved.push((i, j, why)),
                    None => {
                        return Err(BatchError::Simulation {
                            scenario: scenario.name().to_owned(),
                            source,
                        });
                    }
                }
            }
        }
        Ok(unserved)
    }

    fn duration(&self, scenario: &Scenario) -> Duration {
        self.options
            .duration
            .unwrap_or_else(|| Duration::from_secs_f64(scenario.seconds()))
    }

    /// What a run is to build.
    fn network(&self, scenario: &Scenario, run: u32) -> Network {
        scenario.draw_for(run_seed(self.options.seed, run), self.duration(scenario))
    }

    fn simulation<O: Observer>(
        &self,
        network: &Network,
        scenario: &Scenario,
        scheme: &Selection,
        run: u32,
        observer: O,
    ) -> Result<Simulation<O>, SimulationError> {
        let options = Options {
            duration: self.duration(scenario),
            warmup: self.options.warmup,
            seed: run_seed(self.options.seed, run),
            grid: self.options.grid.filter(|_| run == 0),
        };
        let trace = |spec: &TraceSpec| self.traces.load_spec(spec).map_err(|e| e.to_string());
        Simulation::observed(network, scheme, &self.registry, &trace, options, observer)
    }

    /// The schemes that scenarios cannot serve, by scenario and in the order of the schemes.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// How many runs there are.
    pub fn total_runs(&self) -> usize {
        self.tasks.len()
    }

    /// Simulated seconds of all runs together.
    pub fn total_simulated_s(&self) -> f64 {
        self.tasks
            .iter()
            .map(|t| self.duration(&self.scenarios[t.scenario]).as_secs_f64())
            .sum()
    }

    /// A handle to watch and to cancel by.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Runs everything; returns when all is done or cancelled.
    ///
    /// # Errors
    /// The first failure, in the order of runs; the other runs are finished all the same.
    pub fn run(&self) -> Result<(), BatchError> {
        let jobs = self
            .options
            .jobs
            .map_or(0, |jobs| jobs.min(self.tasks.len()));
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(jobs)
            .build()
            .map_err(|e| BatchError::Options(format!("cannot start threads: {e}")))?;
        pool.install(|| {
            // One task at a time for each thread: runs differ much in length.
            (0..self.tasks.len())
                .into_par_iter()
                .with_max_len(1)
                .for_each(|i| {
                    if !self.progress.is_cancelled() {
                        self.run_task(i);
                    }
                });
        });
        match self
            .failure
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .take()
        {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    fn run_task(&self, index: usize) {
        let result =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.simulate(index)));
        let task = self.tasks[index];
        let scenario = self.scenarios[task.scenario].name().to_owned();
        let error = match result {
            Ok(Ok(Some(outcome))) => {
                self.outcomes[index].get_or_init(|| outcome);
                self.progress.0.finished.fetch_add(1, Ordering::Relaxed);
                return;
            }
            Ok(Ok(None)) => return,
            Ok(Err(source)) => BatchError::Simulation { scenario, source },
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let message = text
                    .or(panic.downcast_ref::<&str>().copied())
                    .unwrap_or("it panicked")
                    .to_owned();
                let scheme = self.schemes[task.scheme].spec.clone();
                BatchError::Panic {
                    scenario,
                    scheme,
                    run: task.run,
                    message,
                }
            }
        };
        let mut failure = self.failure.lock().unwrap_or_else(|e| e.into_inner());
        if failure.as_ref().is_none_or(|(first, _)| index < *first) {
            *failure = Some((index, error));
        }
    }

    /// `None` if cancelled on the way.
    fn simulate(&self, index: usize) -> Result<Option<Outcome>, SimulationError> {
        let Task {
            scenario,
            scheme,
            run,
        } = self.tasks[index];
        let (scenario, scheme) = (&self.scenarios[scenario], &self.schemes[scheme]);
        let network = self.network(scenario, run);
        let Some(recordings) = self.options.recordings.as_ref().filter(|_| run == 0) else {
            return self.drive(self.simulation(&network, scenario, scheme, run, ())?);
        };
        let stem = recordings.stem(scenario.name(), &scheme.spec, run);
        let title = format!("{}, {}, run {run}", scenario.name(), scheme.spec);
        let router = router_of_schemes(&network, scheme, &self.registry);
        let mut recorder = Recorder::new(&stem, recordings, &network, router, &title);
        let result = self
            .simulation(&network, scenario, scheme, run, &mut recorder)
            .and_then(|simulation| self.drive(simulation));
        // Cancelled or failed, there is a recording of what was.
        self.recorded[index].get_or_init(|| recorder.finish());
        result
    }

    /// Runs it to its end; `None` if cancelled on the way.
    fn drive<O: Observer>(
        &self,
        mut simulation: Simulation<O>,
    ) -> Result<Option<Outcome>, SimulationError> {
        let end = simulation.end();
        while simulation.now() < end {
            if self.progress.is_cancelled() {
                return Ok(None);
            }
            let before = simulation.now();
            simulation.run_until(before + Self::STEP)?;
            let step = simulation.now().since(before).as_nanos();
            self.progress
                .0
                .simulated_ns
                .fetch_add(step, Ordering::Relaxed);
        }
        simulation.finish().map(Some)
    }

    /// The rows of every finished run, in the order of scenarios, schemes, runs and flows.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (task, outcome) in self.finished() {
            let scenario = &self.scenarios[task.scenario];
            rows.extend(outcome.rows.iter().map(|r| Row {
                scenario: scenario.name().to_owned(),
                scenario_hash: scenario.hash().to_owned(),
                scheme: self.schemes[task.scheme].spec.clone(),
                code_version: self.options.code_version.clone(),
                world: crate::WORLD.name,
                run: task.run as i32,
                seed: run_seed(self.options.seed, task.run),
                flow: r.flow,
                flow_scheme: r.scheme.clone(),
                seconds: self.duration(scenario).as_secs_f64(),
                warmup: self.options.warmup.as_secs_f64(),
                metrics: r.metrics,
                fitness: outcome.fitness.clone(),
            }));
        }
        rows
    }

    /// The time series that were kept, in the same order.
    pub fn series(&self) -> Vec<SeriesRow> {
        let mut rows = Vec::new();
        for (task, outcome) in self.finished() {
            rows.extend(outcome.series.iter().map(|s| SeriesRow {
                scenario: self.scenarios[task.scenario].name().to_owned(),
                scheme: self.schemes[task.scheme].spec.clone(),
                run: task.run as i32,
                flow: s.flow,
                series: s.series.clone(),
                capacity_mbps: s.capacity_mbps.clone(),
                queue_packets: s.queue_packets.clone(),
            }));
        }
        rows
    }

    /// The files of the recordings, in the same order.
    pub fn recordings(&self) -> Vec<RecordingRow> {
        let mut rows = Vec::new();
        for (task, recorded) in self.tasks.iter().zip(&self.recorded) {
            let files = recorded.get().map_or(&[][..], |r| &r.files);
            rows.extend(files.iter().map(|path| RecordingRow {
                scenario: self.scenarios[task.scenario].name().to_owned(),
                scheme: self.schemes[task.scheme].spec.clone(),
                run: task.run,
                path: path.clone(),
            }));
        }
        rows
    }

    /// Why recordings are incomplete, if any are: a line each.
    pub fn recording_failures(&self) -> Vec<String> {
        let recorded = self.recorded.iter().filter_map(OnceLock::get);
        recorded.filter_map(|r| r.failure.clone()).collect()
    }

    fn finished(&self) -> impl Iterator<Item = (Task, &Outcome)> {
        self.tasks
            .iter()
            .zip(&self.outcomes)
            .filter_map(|(t, o)| Some((*t, o.get()?)))
    }
}
