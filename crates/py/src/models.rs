use std::path::PathBuf;

use headway_policy::model::{CARD, GOLDEN, Model, Shipped, WEIGHTS, shipped};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::usage;

/// The loader's description of a model.
fn describe<'py>(py: Python<'py>, model: &Model) -> PyResult<Bound<'py, PyDict>> {
    let card = serde_json::to_string(model.card()).map_err(usage)?;
    let (golden_rows, golden_error) = model.golden();
    let d = PyDict::new(py);
    d.set_item("id", model.id())?;
    d.set_item("card", card)?;
    d.set_item("parameters", model.parameters())?;
    d.set_item("golden_rows", golden_rows)?;
    d.set_item("golden_error", golden_error)?;
    Ok(d)
}

#[pyfunction]
pub(crate) fn check_model(py: Python<'_>, folder: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let model = py.detach(|| Model::load(&folder)).map_err(usage)?;
    describe(py, &model)
}

#[pyfunction]
pub(crate) fn shipped_models(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let describe_one = |one: &Shipped| {
        let files = PyDict::new(py);
        files.set_item(CARD, PyBytes::new(py, one.files.card))?;
        files.set_item(WEIGHTS, PyBytes::new(py, one.files.weights))?;
        files.set_item(GOLDEN, PyBytes::new(py, one.files.golden))?;
        let d = describe(py, &one.model().map_err(usage)?)?;
        d.set_item("files", files)?;
        Ok(d)
    };
    shipped().iter().map(describe_one).collect()
}
