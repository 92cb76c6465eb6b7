use headway_scenario::RateSpec;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::usage;

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

    #[getter]
    fn trace_parts(&self) -> Vec<(String, &'static str)> {
        let specs = self.0.trace_specs();
        specs.map(|spec| (spec.name, spec.part.name())).collect()
    }

    #[getter]
    fn varies(&self) -> Vec<String> {
        self.0.varies()
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
