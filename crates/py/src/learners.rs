use std::path::PathBuf;

use headway_cc::Duration;
use headway_env::train_flow;
use headway_policy::model::{CARD, LEARNER, Learner, ShippedLearner, shipped_learners};
use headway_policy::schemes::RaxSpec;
use headway_scenario::{Scenario, TraceStore};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::{own_traces, usage};

/// The loader's description of a learner.
fn describe<'py>(py: Python<'py>, learner: &Learner) -> PyResult<Bound<'py, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("id", learner.id())?;
    let card = serde_json::to_string(learner.card()).map_err(usage)?;
    d.set_item("card", card)?;
    d.set_item("parameters", learner.parameters())?;
    d.set_item("updates", learner.updates())?;
    Ok(d)
}

#[pyfunction]
pub(crate) fn check_learner(py: Python<'_>, folder: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let learner = py.detach(|| Learner::load(&folder)).map_err(usage)?;
    describe(py, &learner)
}

#[pyfunction]
#[pyo3(name = "shipped_learners")]
pub(crate) fn all_shipped_learners(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let describe_one = |one: &ShippedLearner| {
        let files = PyDict::new(py);
        files.set_item(CARD, PyBytes::new(py, one.files.card))?;
        files.set_item(LEARNER, PyBytes::new(py, one.files.learner))?;
        let d = describe(py, &one.learner().map_err(usage)?)?;
        d.set_item("files", files)?;
        Ok(d)
    };
    shipped_learners().iter().map(describe_one).collect()
}

#[pyfunction]
#[pyo3(signature = (scenario, seed, seconds, *, alpha=4.0, learned=None))]
pub(crate) fn learn(
    py: Python<'_>,
    scenario: &str,
    seed: u64,
    seconds: f64,
    alpha: f32,
    learned: Option<&str>,
) -> PyResult<String> {
    let scenario = Scenario::load(scenario).map_err(usage)?;
    let store = TraceStore::new([own_traces(py)?]).for_training();
    let length = Duration::from_secs_f64(seconds);
    let spec = RaxSpec {
        alpha,
        ..RaxSpec::default()
    };
    py.detach(|| train_flow(&scenario, seed, length, &spec, learned, &store))
        .map_err(usage)
}
