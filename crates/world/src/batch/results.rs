//! What a batch gives: rows, series and files, in the order of scenarios, schemes, runs and flows.

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
    /// Which run, from 0.
    pub run: u32,
    /// The file.
    pub path: PathBuf,
}

impl Batch {
    /// The rows of every finished run.
    pub fn rows(&self) -> Vec<Row> {
        self.finished().flat_map(|f| self.rows_of(f)).collect()
    }

    /// The time series that were kept.
    pub fn series(&self) -> Vec<SeriesRow> {
        self.finished().flat_map(|f| self.series_of(f)).collect()
    }

    /// Rows and time series of the same runs, also while more of them finish.
    pub fn rows_and_series(&self) -> (Vec<Row>, Vec<SeriesRow>) {
        let finished: Vec<_> = self.finished().collect();
        let rows = finished.iter().flat_map(|&f| self.rows_of(f)).collect();
        let series = finished.iter().flat_map(|&f| self.series_of(f)).collect();
        (rows, series)
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

    /// Why recordings are incomplete, if any are: a line each.
    pub fn recording_failures(&self) -> Vec<String> {
        let recorded = self.recorded.iter().filter_map(OnceLock::get);
        recorded.filter_map(|r| r.failure.clone()).collect()
    }

    fn finished(&self) -> impl Iterator<Item = (Task, &Outcome)> {
        let earlier = |i| self.earlier.get().and_then(|earlier| earlier.get(&i));
        let outcomes = self.outcomes.iter().zip(0..);
        let outcomes = outcomes.map(move |(outcome, i)| outcome.get().or_else(|| earlier(i)));
        self.tasks
            .iter()
            .zip(outcomes)
            .filter_map(|(task, outcome)| Some((*task, outcome?)))
    }
}
