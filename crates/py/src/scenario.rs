use headway_cc::{Duration, Rate};
use headway_scenario::{RateSpec, TraceSpec, TraceStore};
use headway_world::{PathRange, path_over_time};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::{own_traces, usage};

#[pyfunction]
pub(crate) fn scenario_names() -> Vec<&'static str> {
    headway_scenario::shipped().to_vec()
}

#[pyclass(frozen, module = "headway._native")]
pub(crate) struct Scenario(pub(crate) headway_scenario::Scenario);

#[pymethods]
impl Scenario {
    #[staticmethod]
    fn load(name_or_path: &str) -> PyResult<Scenario> {
        headway_scenario::Scenario::load(name_or_path)
            .map(Scenario)
            .map_err(usage)
    }

    #[staticmethod]
    fn load_all(name_or_path: &str) -> PyResult<Vec<Scenario>> {
        headway_scenario::Scenario::load_all(name_or_path)
            .map(|all| all.into_iter().map(Scenario).collect())
            .map_err(usage)
    }

    #[getter]
    fn sweep<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(sweep) = self.0.sweep() else {
            return Ok(None);
        };
        let dict = PyDict::new(py);
        dict.set_item("family", &sweep.family)?;
        dict.set_item("key", &sweep.key)?;
        dict.set_item("values", &sweep.values)?;
        Ok(Some(dict))
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[getter]
    fn paper(&self) -> &str {
        self.0.paper()
    }

    #[getter]
    fn description(&self) -> &str {
        self.0.description()
    }

    #[getter]
    fn text(&self) -> &str {
        self.0.text()
    }

    #[getter]
    fn hash(&self) -> &str {
        self.0.hash()
    }

    #[getter]
    fn seconds(&self) -> f64 {
        self.0.seconds()
    }

    #[getter]
    fn flows(&self) -> usize {
        self.0.flows()
    }

    #[getter]
    fn traces(&self) -> Vec<String> {
        self.0.traces()
    }

    fn ambiguous_traces(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.0.ambiguous_traces(&TraceStore::new([own_traces(py)?])))
    }

    #[getter]
    fn trace_parts(&self) -> Vec<(String, &'static str)> {
        let specs = self.0.trace_specs();
        specs.map(|spec| (spec.name, spec.part.name())).collect()
    }

    #[getter]
    fn varies(&self) -> Vec<String> {
        self.0.varies()
    }

    #[pyo3(signature = (seed, seconds=None, flow=0))]
    fn path(
        &self,
        seed: u64,
        seconds: Option<f64>,
        flow: usize,
    ) -> PyResult<Vec<(f64, Option<f64>, f64)>> {
        let seconds = seconds.unwrap_or(self.0.seconds());
        if !(0.0..=1e6).contains(&seconds) {
            return Err(usage(format!(
                "seconds is {seconds}, must be from 0 to 1000000"
            )));
        }
        let network = self.0.draw_for(seed, Duration::from_secs_f64(seconds));
        let Some(of) = network.flows.get(flow) else {
            return Err(usage(format!("there is no flow {flow}")));
        };
        let states = path_over_time(&network, of).map_err(usage)?;
        Ok(states
            .into_iter()
            .map(|state| {
                let mbps = state.rate.map(Rate::as_mbps);
                (state.at.as_secs_f64(), mbps, state.rtt.as_millis_f64())
            })
            .collect())
    }

    fn path_range<'py>(&self, py: Python<'py>, seeds: u64) -> PyResult<Bound<'py, PyDict>> {
        let store = TraceStore::new([own_traces(py)?]);
        let traces = |spec: &TraceSpec| {
            let loaded = self.0.load_trace(spec, &store);
            loaded.map_err(|error| error.to_string())
        };
        let mut range = PathRange::default();
        range.see(&self.0, &traces, seeds).map_err(usage)?;
        let PathRange {
            rate_mbps,
            rtt_ms,
            buffer_ms,
            loss,
        } = range;
        let dict = PyDict::new(py);
        let named = [
            ("rate_mbps", rate_mbps),
            ("rtt_ms", rtt_ms),
            ("buffer_ms", buffer_ms),
            ("loss", loss),
        ];
        for (name, [least, most]) in named {
            if least <= most {
                dict.set_item(name, (least, most))?;
            }
        }
        Ok(dict)
    }

    fn trace_offset_s(&self, seed: u64) -> Option<f64> {
        self.0
            .draw(seed)
            .links
            .iter()
            .find_map(|link| match &link.rate {
                RateSpec::Trace { offset, .. } => Some(offset.as_secs_f64()),
                _ => None,
            })
    }
}
