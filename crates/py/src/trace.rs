use std::ffi::OsString;
use std::path::PathBuf;

use headway_cc::{Duration, suggest};
use headway_scenario::{Part, Seconds, Shares, TraceStore, load_trace};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::{own_traces, usage};

/// The most rows of a trace: a day at 50 ms has fewer.
const MAX_ROWS: f64 = 2e6;

#[pyclass(frozen, module = "headway._native")]
pub(crate) struct Trace(headway_net::trace::Trace);

#[pymethods]
impl Trace {
    #[staticmethod]
    fn load(path: PathBuf, part: &str) -> PyResult<Trace> {
        let names = Part::NAMES;
        let (_, part) = names
            .iter()
            .find(|(name, _)| *name == part)
            .ok_or_else(|| {
                let hint = suggest(part, names.map(|(name, _)| name));
                usage(format!("there is no part '{part}' of a trace; {hint}"))
            })?;
        load_trace(&path, *part).map(Trace).map_err(usage)
    }

    #[staticmethod]
    fn find(py: Python<'_>, name: &str) -> PyResult<Option<OsString>> {
        Ok(TraceStore::new([own_traces(py)?])
            .find(name)
            .map(PathBuf::into_os_string))
    }

    #[staticmethod]
    fn from_rates(rates_mbps: Vec<f64>, interval_s: f64) -> PyResult<Trace> {
        let interval = Duration::from_secs_f64(interval_s);
        headway_net::trace::Trace::from_rates(&rates_mbps, interval)
            .map(Trace)
            .map_err(usage)
    }

    #[staticmethod]
    fn from_steps(lengths_s: Vec<f64>, rates_mbps: Vec<f64>) -> PyResult<Trace> {
        let lengths = lengths_s.into_iter().map(Duration::from_secs_f64);
        let steps: Vec<_> = lengths.zip(rates_mbps).collect();
        headway_net::trace::Trace::from_steps(&steps)
            .map(Trace)
            .map_err(usage)
    }

    #[getter]
    fn seconds(&self) -> f64 {
        self.0.period().as_secs_f64()
    }

    #[getter]
    fn opportunities(&self) -> usize {
        self.0.count()
    }

    #[getter]
    fn mean_mbps(&self) -> f64 {
        self.0.mean_mbps()
    }

    fn rates_mbps(&self, interval_s: f64) -> PyResult<Vec<f64>> {
        let rows = self.seconds() / interval_s;
        if rows.is_nan() || rows > MAX_ROWS {
            return Err(usage(format!(
                "a trace of {} s makes {rows:.0} intervals of {interval_s} s, at most are {MAX_ROWS}; take a longer interval",
                self.seconds()
            )));
        }
        Ok(self.0.rates_mbps(Duration::from_secs_f64(interval_s)))
    }

    fn times_ms<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, self.0.opportunities())
    }

    fn lines(&self, skipped: usize, count: usize) -> String {
        self.0.lines(skipped, count)
    }
}

#[pyfunction]
pub(crate) fn looks_like(head: &[u8]) -> Option<String> {
    headway_net::trace::looks_like(head)
}

#[pyfunction]
pub(crate) fn split(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let names = PyDict::new(py);
    for (name, evaluation) in headway_scenario::split() {
        names.set_item(name, evaluation)?;
    }
    Ok(names)
}

#[pyfunction]
pub(crate) fn trace_split(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let trace = load_trace(&path, Part::Whole).map_err(usage)?;
    let shares = Shares::of(&trace, &path);
    let seconds = |parts: Seconds| -> Vec<(f64, f64)> {
        let ends = parts.iter();
        ends.map(|p| (p.start.as_secs_f64(), p.end.as_secs_f64()))
            .collect()
    };
    let row = PyDict::new(py);
    row.set_item("training_s", seconds(shares.training))?;
    row.set_item("evaluation_s", seconds(shares.evaluation))?;
    row.set_item("listed", shares.listed)?;
    Ok(row)
}
