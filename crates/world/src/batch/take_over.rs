//! Takes over finished runs of an earlier batch, so that they need not run again.

use std::collections::HashMap;

use headway_record::{Row, SeriesRow};

use super::{Batch, BatchError, run_seed};
use crate::{FlowOutcome, FlowSeries, Outcome};

/// The key of a run, by its rows: scenario, scheme, number.
type Key = (String, String, i32);

impl Batch {
    /// Takes over the runs that an earlier batch has finished. They do not run again, unless a
    /// recording is requested and missing, or they were unfit. Call this once, before
    /// [`Batch::run`]. Returns the number of runs taken over.
    ///
    /// `rows` and `series` come from [`Batch::rows`] and [`Batch::series`] of that batch.
    ///
    /// # Errors
    /// [`BatchError::Other`] if a row does not belong to this batch. Then nothing is taken over.
    pub fn take_over(&self, rows: Vec<Row>, series: Vec<SeriesRow>) -> Result<usize, BatchError> {
        let index = self.index();
        let mut models = HashMap::new();
        for row in &rows {
            let key = (row.scenario.clone(), row.scheme.clone(), row.run);
            let differs = match index.get(&key) {
                Some(&task) => self.difference(task, row, &mut models),
                None => Some(format!(
                    "run {} of {} on {}, which is not part of this batch",
                    row.run, row.scheme, row.scenario
                )),
            };
            if let Some(difference) = differs {
                return Err(BatchError::Other(difference));
            }
        }
        let mut found: HashMap<usize, Outcome> = HashMap::new();
        for row in rows {
            let outcome = found.entry(index[&(row.scenario, row.scheme, row.run)]);
            let outcome = outcome.or_default();
            outcome.rows.push(FlowOutcome {
                flow: row.flow,
                scheme: row.flow_scheme,
                model: row.model,
                metrics: row.metrics,
            });
            outcome.fitness = row.fitness;
        }
        for row in series {
            let task = index.get(&(row.scenario, row.scheme, row.run));
            // A series is written before its results, so a series alone belongs to a run that has
            // not finished.
            if let Some(outcome) = task.and_then(|task| found.get_mut(task)) {
                outcome.series.push(FlowSeries {
                    flow: row.flow,
                    series: row.series,
                    capacity_mbps: row.capacity_mbps,
                    queue_packets: row.queue_packets,
                });
            }
        }
        found.retain(|&task, outcome| !self.keeps_series(task) || !outcome.series.is_empty());
        // An unfit run says nothing about a network, so it runs again.
        let is_fit = |outcome: &Outcome| outcome.fitness.as_ref().is_none_or(|f| f.unfit.is_none());
        found.retain(|_, outcome| is_fit(outcome));
        let count = found.len();
        let is_again = |task: &usize, _: &mut Outcome| self.lacks_recording(*task);
        let again = found.extract_if(is_again).collect();
        self.earlier.get_or_init(|| again);
        for (task, outcome) in found {
            self.outcomes[task].get_or_init(|| outcome);
            let scenario = &self.scenarios[self.tasks[task].scenario];
            self.progress.go_on(self.options.duration(scenario));
            self.progress.finish_one();
        }
        Ok(count)
    }

    fn keeps_series(&self, task: usize) -> bool {
        self.options.grid.is_some() && self.tasks[task].is_first()
    }

    fn lacks_recording(&self, task: usize) -> bool {
        let task = self.tasks[task];
        let (scenario, scheme) = (self.scenarios[task.scenario].name(), self.scheme_of(task));
        let wanted = self.options.recordings.as_ref();
        wanted.is_some_and(|wanted| task.is_first() && !wanted.has(scenario, scheme, task.run))
    }

    fn index(&self) -> HashMap<Key, usize> {
        let key = |task: &super::Task| {
            let scenario = self.scenarios[task.scenario].name().to_owned();
            (scenario, self.schemes[task.scheme].clone(), task.run as i32)
        };
        self.tasks.iter().map(key).zip(0..).collect()
    }

    /// The difference between the row's run and the task's, in a few words.
    fn difference(
        &self,
        task: usize,
        row: &Row,
        models: &mut HashMap<String, Option<String>>,
    ) -> Option<String> {
        let task = self.tasks[task];
        let scenario = &self.scenarios[task.scenario];
        let differs = |what: &str, there: &dyn ToString, here: &dyn ToString| {
            let (there, here) = (there.to_string(), here.to_string());
            (there != here).then(|| format!("{what} {there}, not {here}"))
        };
        let seconds = self.options.duration(scenario).as_secs_f64();
        let of_run = format!("run {} with seed", task.run);
        let model = models.entry(row.flow_scheme.clone());
        let model = model.or_insert_with(|| self.model(&row.flow_scheme));
        differs("runs in world", &row.world, &self.world.about().name)
            .or_else(|| {
                let code = &self.options.code_version;
                differs("runs of code_version", &row.code_version, code)
            })
            .or_else(|| {
                let what = format!("runs of scenario {} with hash", scenario.name());
                differs(&what, &row.scenario_hash, &scenario.hash())
            })
            .or_else(|| differs("runs with seconds", &row.seconds, &seconds))
            .or_else(|| {
                let warmup = self.options.warmup.as_secs_f64();
                differs("runs with warmup", &row.warmup, &warmup)
            })
            .or_else(|| {
                let seed = run_seed(self.options.seed, task.run);
                differs(&of_run, &row.seed, &seed)
            })
            .or_else(|| {
                let here = model.as_ref()?;
                let there = row.model.as_deref().unwrap_or("none");
                let what = format!("runs of {} with model", row.flow_scheme);
                differs(&what, &there, here)
            })
    }

    /// The trained model by which a scheme decides here, or the user's own class, if there is one.
    fn model(&self, scheme: &str) -> Option<String> {
        let canonical = self.world.canonical(scheme).ok()?;
        if let Some(class) = canonical.strip_prefix("python:") {
            return Some(class.to_owned());
        }
        let (_, model) = canonical.split_once(":model=")?;
        model.split(':').next().map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use headway_cc::{Duration, SchemeError};
    use headway_record::{ALL_FLOWS, Fitness, Metrics, Series};
    use headway_scenario::Scenario;

    use super::*;
    use crate::{BatchOptions, Ended, Recorded, Recording, Recordings, RunError, Trial, World};

    /// A world in real time, in which each run differs and records its number.
    #[derive(Debug, Default)]
    struct Counting {
        runs: AtomicUsize,
        /// How many runs finish; later ones are interrupted.
        most: Option<usize>,
        model: &'static str,
    }

    impl World for Counting {
        fn about(&self) -> headway_cc::World {
            headway_cc::World {
                name: "emu",
                supplies: &[],
            }
        }

        fn canonical(&self, scheme: &str) -> Result<String, SchemeError> {
            Ok(match scheme {
                "learned" => format!("learned:model={}:interval=1ms", self.model),
                _ => scheme.to_owned(),
            })
        }

        fn default_jobs(&self) -> Option<usize> {
            Some(1)
        }

        fn is_deterministic(&self) -> bool {
            false
        }

        fn check(&self, _: &Trial<'_>) -> Result<(), RunError> {
            Ok(())
        }

        fn run(&self, trial: &Trial<'_>, go_on: &mut dyn FnMut(Duration) -> bool) -> Ended {
            let number = self.runs.fetch_add(1, Ordering::Relaxed);
            go_on(trial.options.duration);
            let row = |flow| FlowOutcome {
                flow,
                scheme: trial.scheme.to_owned(),
                model: (trial.scheme == "learned").then(|| self.model.to_owned()),
                metrics: Metrics {
                    throughput_mbps: Some(number as f64),
                    ..Metrics::default()
                },
            };
            let series = trial.options.grid.map(|_| FlowSeries {
                flow: ALL_FLOWS,
                series: Series {
                    time_s: vec![number as f64],
                    ..Series::default()
                },
                capacity_mbps: vec![],
                queue_packets: vec![],
            });
            let outcome = Outcome {
                rows: vec![row(ALL_FLOWS), row(0)],
                series: series.into_iter().collect(),
                fitness: Some(Fitness::default()),
            };
            let stops = self.most.is_some_and(|most| number >= most);
            let record = |recording: &Recording<'_>| {
                let file = format!("{}.sender.pcap", recording.stem.display());
                let file = PathBuf::from(file);
                fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
                fs::write(&file, format!("run {number}")).expect("a file");
                Recorded {
                    files: vec![file],
                    failure: None,
                }
            };
            Ended {
                outcome: Ok((!stops).then_some(outcome)),
                recorded: trial.recording.as_ref().map(record),
            }
        }
    }

    fn options(runs: u32) -> BatchOptions {
        BatchOptions {
            runs,
            duration: Some(Duration::from_secs(2)),
            warmup: Duration::ZERO,
            seed: 1,
            jobs: None,
            grid: Some(Duration::from_secs(2)),
            transport: None,
            recordings: None,
            leave_out: false,
            trace_dirs: vec![],
            code_version: "1".to_owned(),
        }
    }

    fn batch(world: Counting, schemes: &[&str], options: BatchOptions) -> Batch {
        let scenario = Scenario::load("rax-1").expect("it ships");
        let schemes: Vec<String> = schemes.iter().map(|&s| s.to_owned()).collect();
        Batch::new(Arc::new(world), vec![scenario], &schemes, options).expect("a batch")
    }

    /// The rows and series of a batch of one scheme that was interrupted after `most` of three
    /// runs.
    fn stopped(most: usize, scheme: &str) -> (Vec<Row>, Vec<SeriesRow>) {
        let world = Counting {
            most: Some(most),
            model: "x@1",
            ..Counting::default()
        };
        let first = batch(world, &[scheme], options(3));
        first.run().expect("runs");
        (first.rows(), first.series())
    }

    fn numbers(batch: &Batch) -> Vec<f64> {
        let pooled = batch.rows().into_iter().filter(|r| r.flow == ALL_FLOWS);
        let numbers = pooled.filter_map(|r| r.metrics.throughput_mbps);
        numbers.collect()
    }

    /// A billion bins would not fit in memory.
    #[test]
    fn the_bins_of_a_long_run_are_wider() {
        let scenario = Scenario::load("rax-1").expect("it ships");
        let network = scenario.draw(1);
        let bins = |seconds| {
            let duration = Duration::from_secs(seconds);
            let bin = options(1).bin(&network, duration).expect("a grid");
            let series = (network.flows.len() + network.links.len() + 1) as u64;
            assert_eq!(bin.as_nanos() % 2_000_000_000, 0);
            let bins = series * duration.as_nanos().div_ceil(bin.as_nanos());
            (bin, bins)
        };
        assert_eq!(bins(400_000).0, Duration::from_secs(2));
        for seconds in [1_000_000, 1_000_000_000] {
            let (bin, bins) = bins(seconds);
            assert!(bin > Duration::from_secs(2));
            assert!((500_000..=1_000_000).contains(&bins), "{bins}");
        }
    }

    /// Memory grows with runs and flows, and not with the length of runs.
    #[test]
    fn the_memory_of_a_batch_is_estimated() {
        let memory = |runs, seconds| {
            let length = Some(Duration::from_secs(seconds));
            let told = BatchOptions {
                duration: length,
                jobs: Some(1),
                ..options(runs)
            };
            batch(Counting::default(), &["cubic"], told).memory()
        };
        assert!((2_000_000_000..4_000_000_000).contains(&memory(1_000_000, 2)));
        assert!(memory(1, 2) < 1_000_000);
        assert!(memory(1, 1_000_000) < 1_000_000_000);
    }

    #[test]
    fn finished_runs_stay_and_missing_ones_are_run() {
        let (rows, series) = stopped(2, "cubic");
        assert_eq!((rows.len(), series.len()), (4, 1));
        let second = batch(Counting::default(), &["bbr", "cubic"], options(4));
        assert_eq!(second.take_over(rows.clone(), series.clone()).unwrap(), 2);
        assert_eq!(second.progress().finished(), 2);
        assert_eq!(second.progress().done_s(), 4.0);
        assert_eq!((second.rows(), second.series()), (rows, series));
        second.run().expect("runs");
        // All runs of bbr come first, then those of cubic: the first two of each are the earlier
        // ones.
        assert_eq!(numbers(&second), [0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 4.0, 5.0]);
        assert_eq!(second.progress().finished(), second.total_runs());
        assert_eq!(second.progress().done_s(), second.total_s());
    }

    #[test]
    fn a_run_that_the_machine_changed_runs_again() {
        let (mut rows, series) = stopped(3, "cubic");
        let changed = rows.iter_mut().filter(|row| row.run == 1);
        changed.for_each(|row| row.fitness.as_mut().expect("one").unfit = Some("it slept".into()));
        let second = batch(Counting::default(), &["cubic"], options(3));
        assert_eq!(second.take_over(rows, series).unwrap(), 2);
        second.run().expect("runs");
        assert_eq!(numbers(&second), [0.0, 0.0, 2.0]);
    }

    #[test]
    fn a_complete_batch_runs_nothing() {
        let (rows, series) = stopped(3, "cubic");
        let second = batch(Counting::default(), &["cubic"], options(3));
        assert_eq!(second.take_over(rows.clone(), series.clone()).unwrap(), 3);
        second.run().expect("runs");
        assert_eq!((second.rows(), second.series()), (rows, series));
    }

    /// Options of two runs, with a capture of the first one.
    fn recorded(folder: &Path) -> BatchOptions {
        BatchOptions {
            recordings: Some(Recordings {
                folder: folder.to_owned(),
                pcap: true,
                qlog: false,
                logs: false,
            }),
            ..options(2)
        }
    }

    /// A world whose next run has this number, and which interrupts runs from `most` on.
    fn world_from(number: usize, most: Option<usize>) -> Counting {
        Counting {
            runs: AtomicUsize::new(number),
            most,
            ..Counting::default()
        }
    }

    /// Its earlier results are kept until then.
    #[test]
    fn a_run_without_its_recording_runs_again() {
        let folder = std::env::temp_dir().join(format!("headway-again-{}", std::process::id()));
        let (rows, series) = stopped(2, "cubic");
        let second = batch(world_from(7, None), &["cubic"], recorded(&folder));
        assert_eq!(second.take_over(rows, series).unwrap(), 2);
        assert_eq!(second.progress().finished(), 1);
        assert_eq!(numbers(&second), [0.0, 1.0]);
        second.run().expect("runs");
        assert_eq!(numbers(&second), [7.0, 1.0]);
        assert_eq!(second.series()[0].series.time_s, [7.0]);
        assert_eq!(second.progress().finished(), 2);
        let capture = folder.join("rax-1/cubic/run-0.sender.pcap");
        assert_eq!(second.recordings()[0].path, capture);

        // A run that has been recorded does not run again.
        let third = batch(world_from(9, None), &["cubic"], recorded(&folder));
        let (rows, series) = (second.rows(), second.series());
        assert_eq!(third.take_over(rows.clone(), series.clone()).unwrap(), 2);
        assert_eq!(third.progress().finished(), 2);
        third.run().expect("runs");
        assert_eq!(
            (third.rows(), third.series()),
            (rows.clone(), series.clone())
        );
        assert_eq!(fs::read_to_string(&capture).unwrap(), "run 7");

        // A capture does not replace a log.
        let mut more = recorded(&folder);
        more.recordings.as_mut().expect("recordings").logs = true;
        let fourth = batch(world_from(9, None), &["cubic"], more);
        assert_eq!(fourth.take_over(rows, series).unwrap(), 2);
        assert_eq!(fourth.progress().finished(), 1);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn an_interrupted_run_leaves_a_whole_recording_alone() {
        let folder = std::env::temp_dir().join(format!("headway-stump-{}", std::process::id()));
        let of_run = |name: &str| fs::read_to_string(folder.join("rax-1/cubic").join(name));
        let (capture, part) = ("run-0.sender.pcap", "part-of-run-0.sender.pcap");
        let run = |number, most| {
            let batch = batch(world_from(number, most), &["cubic"], recorded(&folder));
            batch.run().expect("runs");
            batch.recordings()[0].path.clone()
        };
        assert!(run(3, Some(0)).ends_with(part));
        assert!(
            of_run(capture).is_err(),
            "a part does not stand for the whole"
        );
        assert!(run(5, None).ends_with(capture));
        assert!(of_run(part).is_err(), "it has its name now");
        assert!(run(8, Some(0)).ends_with(part));
        assert_eq!(of_run(capture).unwrap(), "run 5");
        assert_eq!(of_run(part).unwrap(), "run 8");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_first_run_without_its_series_runs_again() {
        let (rows, _) = stopped(2, "cubic");
        let second = batch(Counting::default(), &["cubic"], options(2));
        assert_eq!(second.take_over(rows, vec![]).unwrap(), 1);
        assert_eq!(numbers(&second), [1.0]);
    }

    #[test]
    fn runs_of_another_batch_are_refused_with_the_difference() {
        let (rows, series) = stopped(3, "cubic");
        let refusal = |change: fn(&mut Row), schemes: &[&str], options: BatchOptions| {
            let mut rows = rows.clone();
            rows.iter_mut().for_each(change);
            let second = batch(Counting::default(), schemes, options);
            let refused = second.take_over(rows, series.clone()).unwrap_err();
            assert_eq!(second.progress().finished(), 0);
            refused.to_string()
        };
        let same = |_: &mut Row| ();
        let (seed, warmup) = (2, Duration::from_millis(500));
        let seeded = BatchOptions { seed, ..options(3) };
        let warmed = BatchOptions {
            warmup,
            ..options(3)
        };
        for (refused, says) in [
            (refusal(same, &["cubic"], seeded), "seed 1, not 2"),
            (refusal(same, &["cubic"], warmed), "warmup 0, not 0.5"),
            (
                refusal(|r| r.seconds = 9.0, &["cubic"], options(3)),
                "seconds 9, not 2",
            ),
            (
                refusal(|r| r.world = "sim".to_owned(), &["cubic"], options(3)),
                "world sim, not emu",
            ),
            (
                refusal(|r| r.code_version = "0".to_owned(), &["cubic"], options(3)),
                "code_version 0, not 1",
            ),
            (
                refusal(|r| r.scenario_hash = "x".to_owned(), &["cubic"], options(3)),
                "scenario rax-1 with hash x, not ",
            ),
            (
                refusal(same, &["bbr"], options(3)),
                "run 0 of cubic on rax-1, which is not part of this batch",
            ),
            (
                refusal(same, &["cubic"], options(2)),
                "run 2 of cubic on rax-1, which is not part of this batch",
            ),
        ] {
            assert!(refused.contains(says), "{refused}");
        }
    }

    #[test]
    fn runs_of_another_model_are_refused() {
        let (rows, series) = stopped(3, "learned");
        let with = |model| {
            let world = Counting {
                model,
                ..Counting::default()
            };
            batch(world, &["learned"], options(3)).take_over(rows.clone(), series.clone())
        };
        assert_eq!(with("x@1").unwrap(), 3);
        let refused = with("x@2").unwrap_err().to_string();
        assert!(refused.contains("model x@1, not x@2"), "{refused}");
    }
}
