use std::ffi::OsString;
use std::path::{Path, PathBuf};

use headway_cc::Duration;
use headway_scenario::TraceStore;
use pyo3::prelude::*;

use crate::{own_traces, usage};

#[pyclass(frozen, module = "headway._native")]
pub(crate) struct Trace(headway_net::trace::Trace);

#[pymethods]
impl Trace {
    #[staticmethod]
    fn load(path: &str) -> PyResult<Trace> {
        let text = std::fs::read(path).map_err(|e| usage(format!("{path}: {e}")))?;
        headway_net::trace::Trace::parse(text)
            .map(Trace)
            .map_err(|e| usage(format!("{path}: {e}")))
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

    fn rates_mbps(&self, interval_s: f64) -> Vec<f64> {
        self.0.rates_mbps(Duration::from_secs_f64(interval_s))
    }

    fn save(&self, path: &str) -> PyResult<()> {
        std::fs::write(Path::new(path), self.0.to_mahimahi())
            .map_err(|e| usage(format!("{path}: {e}")))
    }
}
