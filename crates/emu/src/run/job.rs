//! The messages between a world and its worker process: a line of JSON each.

use std::path::{Path, PathBuf};

use headway_cc::Duration;
use headway_scenario::Transport;
use headway_world::{Options, Outcome, Recorded, Recordings, Trial};
use serde::{Deserialize, Serialize};

use super::hosting::Hosting;

/// A job for a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Job {
    /// The process that asks; if it ends, the worker ends.
    pub parent: i32,
    pub task: Task,
}

/// A worker's task.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Task {
    /// Tries what every run needs: namespaces, a device, and a controller of the kernel if one is
    /// given.
    Probe { controller: Option<String> },
    /// Carries out a run.
    Run(Box<RunTask>),
}

/// The data of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RunTask {
    /// The scenario's TOML, and its name.
    pub scenario: String,
    pub name: String,
    pub scheme: String,
    pub hosting: Hosting,
    pub linux_transport: bool,
    pub duration_ns: u64,
    pub warmup_ns: u64,
    pub seed: u64,
    pub grid_ns: Option<u64>,
    pub trace_folders: Vec<PathBuf>,
    /// The folders in which the scenario's traces are looked for first.
    pub scenario_folders: Vec<PathBuf>,
    pub log: Option<LogTask>,
}

/// Where a run's logs go, and what they say about the run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LogTask {
    pub stem: PathBuf,
    pub title: String,
}

/// A worker's answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// How much of the run is done. It comes every tenth of a second.
    Done { ns: u64 },
    /// The task is done; a probe has no outcome.
    Finished {
        outcome: Box<Outcome>,
        /// The files that were written, and why they are incomplete if they are.
        files: Option<(Vec<PathBuf>, Option<String>)>,
    },
    /// The task failed: why, in one line.
    Failed { why: String },
}

impl RunTask {
    pub fn of(trial: &Trial<'_>, hosting: &Hosting) -> RunTask {
        let options = &trial.options;
        let log = |wanted: &Recordings| wanted.logs;
        let recording = trial.recording.as_ref().filter(|r| log(r.wanted));
        RunTask {
            scenario: trial.scenario.text().to_owned(),
            name: trial.scenario.name().to_owned(),
            scheme: trial.scheme.to_owned(),
            hosting: hosting.clone(),
            linux_transport: trial.network.transport == Transport::Linux,
            duration_ns: options.duration.as_nanos(),
            warmup_ns: options.warmup.as_nanos(),
            seed: options.seed,
            grid_ns: options.grid.map(Duration::as_nanos),
            scenario_folders: (trial.scenario.folders().iter().map(|f| absolute(f))).collect(),
            trace_folders: trial.traces.folders().iter().map(|f| absolute(f)).collect(),
            log: recording.map(|r| LogTask {
                stem: absolute(&r.stem),
                title: r.title.clone(),
            }),
        }
    }

    pub fn options(&self) -> Options {
        Options {
            duration: Duration::from_nanos(self.duration_ns),
            warmup: Duration::from_nanos(self.warmup_ns),
            seed: self.seed,
            grid: self.grid_ns.map(Duration::from_nanos),
        }
    }

    pub fn transport(&self) -> Transport {
        match self.linux_transport {
            true => Transport::Linux,
            false => Transport::Simple,
        }
    }
}

impl Answer {
    pub fn finished(outcome: Outcome, recorded: Option<Recorded>) -> Answer {
        let files = recorded.map(|r| (r.files, r.failure));
        Answer::Finished {
            outcome: Box::new(outcome),
            files,
        }
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
