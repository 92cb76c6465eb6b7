//! The results of a batch: rows, series and files, in the order of scenarios, schemes, runs and
//! flows.

use std::path::PathBuf;
use std::sync::OnceLock;

use headway_record::{Row, SeriesRow};

use super::{Batch, Task, run_seed};
use crate::Outcome;

/// A file of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingRow {
    /// The scenario's name.
    pub scenario: String,
    /// The scheme under test, with its parameters.
    pub scheme: String,
    /// The run, from 0.
    pub run: u32,
    /// The file.
    pub path: PathBuf,
}

/// The runs that had finished at one moment, even if others finish meanwhile.
#[derive(Debug)]
pub struct Finished<'a> {
    batch: &'a Batch,
    runs: Vec<(Task, &'a Outcome)>,
}

impl Finished<'_> {
    /// For each run: the scenario's name, the run's number and its seed.
    pub fn runs(&self) -> impl ExactSizeIterator<Item = (&str, u32, u64)> {
        self.runs.iter().map(|(task, _)| {
            let seed = run_seed(self.batch.options.seed, task.run);
            (self.batch.scenarios[task.scenario].name(), task.run, seed)
        })
    }

    /// The rows, made one by one.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        let runs = self.runs.iter();
        runs.flat_map(|&run| self.batch.rows_of(run))
    }

    /// The time series of these runs, as far as they were kept.
    pub fn series(&self) -> Vec<SeriesRow> {
        let runs = self.runs.iter();
        runs.flat_map(|&run| self.batch.series_of(run)).collect()
    }
}

impl Batch {
    /// The rows of every finished run.
    pub fn rows(&self) -> Vec<Row> {
        self.finished().rows().collect()
    }

    /// The time series that were kept.
    pub fn series(&self) -> Vec<SeriesRow> {
        self.finished().series()
    }

    fn rows_of(&self, (task, outcome): (Task, &Outcome)) -> Vec<Row> {
        let scenario = &self.scenarios[task.scenario];
        let rows = outcome.rows.iter().map(|r| Row {
            scenario: scenario.name().to_owned(),
            scenario_hash: scenario.hash().to_owned(),
            scheme: self.schemes[task.scheme].clone(),
            code_version: self.options.code_version.clone(),
            world: self.world.about().name.to_owned(),
            run: task.run as i32,
            seed: run_seed(self.options.seed, task.run),
            flow: r.flow,
            flow_scheme: r.scheme.clone(),
            model: r.model.clone(),
            seconds: self.options.duration(scenario).as_secs_f64(),
            warmup: self.options.warmup.as_secs_f64(),
            metrics: r.metrics,
            fitness: outcome.fitness.clone(),
        });
        rows.collect()
    }

    fn series_of(&self, (task, outcome): (Task, &Outcome)) -> Vec<SeriesRow> {
        let rows = outcome.series.iter().map(|s| SeriesRow {
            scenario: self.scenarios[task.scenario].name().to_owned(),
            scheme: self.schemes[task.scheme].clone(),
            run: task.run as i32,
            flow: s.flow,
            series: s.series.clone(),
            capacity_mbps: s.capacity_mbps.clone(),
            queue_packets: s.queue_packets.clone(),
        });
        rows.collect()
    }

    /// The files of the recordings.
    pub fn recordings(&self) -> Vec<RecordingRow> {
        let mut rows = Vec::new();
        for (task, recorded) in self.tasks.iter().zip(&self.recorded) {
            let files = recorded.get().map_or(&[][..], |r| &r.files);
            rows.extend(files.iter().map(|path| RecordingRow {
                scenario: self.scenarios[task.scenario].name().to_owned(),
                scheme: self.schemes[task.scheme].clone(),
                run: task.run,
                path: path.clone(),
            }));
        }
        rows
    }

    /// Why recordings are incomplete, if any are; one line each.
    pub fn recording_failures(&self) -> Vec<String> {
        let recorded = self.recorded.iter().filter_map(OnceLock::get);
        recorded.filter_map(|r| r.failure.clone()).collect()
    }

    /// The runs that have finished by now.
    pub fn finished(&self) -> Finished<'_> {
        let earlier = |i| self.earlier.get().and_then(|earlier| earlier.get(&i));
        let outcomes = self.outcomes.iter().zip(0..);
        let outcomes = outcomes.map(|(outcome, i)| outcome.get().or_else(|| earlier(i)));
        let runs = self.tasks.iter().zip(outcomes);
        Finished {
            batch: self,
            runs: runs
                .filter_map(|(task, outcome)| Some((*task, outcome?)))
                .collect(),
        }
    }
}
