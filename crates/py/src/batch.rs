use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration as Wait;

use headway_cc::Duration;
use headway_record::{Metrics, Row, SeriesRow, read_results, read_series};
use headway_scenario::Transport;
use headway_world::{BatchError, BatchOptions, Progress, Recordings};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::scenario::Scenario;
use crate::worlds::world_named;
use crate::{CODE_VERSION, RunError, own_traces, usage};

/// The files of a batch in its folder.
const RESULTS: &str = "results.parquet";
const SERIES: &str = "series.parquet";

#[pyclass(frozen, module = "headway._native")]
pub(crate) struct Batch {
    batch: Arc<headway_world::Batch>,
    progress: Progress,
    end: Arc<End>,
}

/// How the batch ended, if it has.
#[derive(Default)]
struct End {
    result: Mutex<Option<Result<(), BatchError>>>,
    reached: Condvar,
}

#[pymethods]
impl Batch {
    #[new]
    #[pyo3(signature = (scenarios, schemes, *, world="sim", runs=30, seconds=None, warmup=0.0, seed=1, jobs=None, grid_ms=Some(500.0), transport=None, recordings=None, pcap=false, qlog=false, logs=false, leave_out=false))]
    #[allow(clippy::too_many_arguments)] // the options of `headway bench`, each given by name
    fn new(
        py: Python<'_>,
        scenarios: Vec<Py<Scenario>>,
        schemes: Vec<String>,
        world: &str,
        runs: u32,
        seconds: Option<f64>,
        warmup: f64,
        seed: u64,
        jobs: Option<usize>,
        grid_ms: Option<f64>,
        transport: Option<&str>,
        recordings: Option<PathBuf>,
        pcap: bool,
        qlog: bool,
        logs: bool,
        leave_out: bool,
    ) -> PyResult<Batch> {
        let scenarios = scenarios.iter().map(|s| s.get().0.clone()).collect();
        let options = BatchOptions {
            runs,
            duration: seconds.map(Duration::from_secs_f64),
            warmup: Duration::from_secs_f64(warmup),
            seed,
            jobs,
            grid: grid_ms.map(|ms| Duration::from_secs_f64(ms / 1e3)),
            transport: transport.map(transport_named).transpose()?,
            recordings: recordings.map(|folder| Recordings {
                folder,
                pcap,
                qlog,
                logs,
            }),
            leave_out,
            trace_dirs: vec![own_traces(py)?],
            code_version: CODE_VERSION.to_owned(),
        };
        let world = world_named(py, world)?;
        let made = py.detach(|| headway_world::Batch::new(world, scenarios, &schemes, options));
        let batch = Arc::new(made.map_err(usage)?);
        let progress = batch.progress();
        Ok(Batch {
            batch,
            progress,
            end: Arc::default(),
        })
    }

    fn take_over(&self, py: Python<'_>, directory: &str) -> PyResult<(usize, String)> {
        let folder = Path::new(directory);
        py.detach(|| {
            let results = read_results(&folder.join(RESULTS)).map_err(usage)?;
            let series = read_series(&folder.join(SERIES)).map_err(usage)?;
            let taken = self.batch.take_over(results.rows, series).map_err(usage)?;
            Ok((taken, results.bench))
        })
    }

    #[getter]
    fn memory_bytes(&self) -> u64 {
        self.batch.memory()
    }

    fn start(&self) {
        let (batch, end) = (Arc::clone(&self.batch), Arc::clone(&self.end));
        std::thread::spawn(move || {
            let result = batch.run();
            *end.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            end.reached.notify_all();
        });
    }

    fn wait(&self, py: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let timeout = Wait::try_from_secs_f64(timeout_s).map_err(usage)?;
        py.detach(|| {
            let guard = self
                .end
                .result
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let waited = self
                .end
                .reached
                .wait_timeout_while(guard, timeout, |r| r.is_none());
            let (guard, _) = waited.unwrap_or_else(PoisonError::into_inner);
            match &*guard {
                None => Ok(false),
                Some(Ok(())) => Ok(true),
                Some(Err(error)) => Err(RunError::new_err(error.to_string())),
            }
        })
    }

    fn cancel(&self) {
        self.progress.cancel();
    }

    fn left_out<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let rows = self.batch.left_out();
        rows.iter()
            .map(|row| {
                let d = PyDict::new(py);
                d.set_item("scenario", &row.scenario)?;
                d.set_item("scheme", &row.scheme)?;
                d.set_item("why", &row.why)?;
                Ok(d)
            })
            .collect()
    }

    #[getter]
    fn total_runs(&self) -> usize {
        self.batch.total_runs()
    }

    #[getter]
    fn finished_runs(&self) -> usize {
        self.progress.finished()
    }

    #[getter]
    fn progress(&self) -> f64 {
        self.progress.done_s() / self.batch.total_s()
    }

    fn results<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.batch
            .rows()
            .iter()
            .map(|row| result(py, row))
            .collect()
    }

    fn series<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.batch
            .series()
            .iter()
            .map(|row| series(py, row))
            .collect()
    }

    fn recordings<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let rows = self.batch.recordings();
        rows.iter()
            .map(|row| {
                let d = PyDict::new(py);
                d.set_item("scenario", &row.scenario)?;
                d.set_item("scheme", &row.scheme)?;
                d.set_item("run", row.run)?;
                d.set_item("path", &row.path)?;
                Ok(d)
            })
            .collect()
    }

    fn recording_failures(&self) -> Vec<String> {
        self.batch.recording_failures()
    }

    fn write_parquet<'py>(
        &self,
        py: Python<'py>,
        directory: &str,
        bench: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let folder = Path::new(directory);
        let finished = py.detach(|| self.batch.finished());
        let mut seeds: HashMap<&str, BTreeMap<u32, u64>> = HashMap::new();
        for (scenario, run, seed) in finished.runs() {
            seeds.entry(scenario).or_default().insert(run, seed);
        }
        let bench: String = bench.call1((finished.runs().len(), seeds))?.extract()?;
        // Results are written last: a run in them has its series, even if this is interrupted.
        let written = py.detach(|| {
            headway_record::write_series(&folder.join(SERIES), &finished.series())?;
            headway_record::write_results(&folder.join(RESULTS), finished.rows(), &bench)
        });
        written.map_err(|e| RunError::new_err(e.to_string()))
    }
}

fn transport_named(name: &str) -> PyResult<Transport> {
    match name {
        "simple" => Ok(Transport::Simple),
        "linux" => Ok(Transport::Linux),
        _ => Err(usage(format!(
            "unknown transport '{name}'; transports are simple, linux"
        ))),
    }
}

fn result<'py>(py: Python<'py>, row: &Row) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("schema", headway_record::SCHEMA_VERSION)?;
    d.set_item("code_version", &row.code_version)?;
    d.set_item("scenario", &row.scenario)?;
    d.set_item("scenario_hash", &row.scenario_hash)?;
    d.set_item("scheme", &row.scheme)?;
    d.set_item("run", row.run)?;
    d.set_item("seed", row.seed)?;
    d.set_item("flow", row.flow)?;
    d.set_item("flow_scheme", &row.flow_scheme)?;
    d.set_item("model", &row.model)?;
    d.set_item("world", &row.world)?;
    d.set_item("seconds", row.seconds)?;
    for (name, value) in row.metrics.named() {
        d.set_item(name, value)?;
    }
    let Metrics {
        sent_packets,
        delivered_packets,
        refused_decisions,
        guard_trips,
        ..
    } = row.metrics;
    d.set_item("sent_packets", sent_packets)?;
    d.set_item("delivered_packets", delivered_packets)?;
    d.set_item("refused_decisions", refused_decisions)?;
    d.set_item("guard_trips", guard_trips)?;
    let fitness = row.fitness.clone().unwrap_or_default();
    for (name, value) in fitness.named() {
        d.set_item(name, value)?;
    }
    d.set_item("unfit", fitness.unfit)?;
    Ok(d)
}

fn series<'py>(py: Python<'py>, row: &SeriesRow) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("scenario", &row.scenario)?;
    d.set_item("scheme", &row.scheme)?;
    d.set_item("run", row.run)?;
    d.set_item("flow", row.flow)?;
    d.set_item("time_s", &row.series.time_s)?;
    d.set_item("sent_mbps", &row.series.sent_mbps)?;
    d.set_item("lost_mbps", &row.series.lost_mbps)?;
    d.set_item("throughput_mbps", &row.series.throughput_mbps)?;
    d.set_item("delay_mean_ms", &row.series.delay_mean_ms)?;
    d.set_item("queue_mean_ms", &row.series.queue_mean_ms)?;
    d.set_item("loss", &row.series.loss)?;
    d.set_item("cwnd_packets", &row.series.cwnd_packets)?;
    d.set_item("in_flight_packets", &row.series.in_flight_packets)?;
    d.set_item("pacing_mbps", &row.series.pacing_mbps)?;
    d.set_item("rtt_ms", &row.series.rtt_ms)?;
    d.set_item("btlbw_mbps", &row.series.btlbw_mbps)?;
    d.set_item("rtprop_ms", &row.series.rtprop_ms)?;
    d.set_item("capacity_mbps", &row.capacity_mbps)?;
    d.set_item("queue_packets", &row.queue_packets)?;
    Ok(d)
}
