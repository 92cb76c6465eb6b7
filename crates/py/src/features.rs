//! The observations that learned controllers may have.

use headway_policy::{FEATURES, Source};
use pyo3::prelude::*;
use pyo3::types::PyDict;

#[pyfunction]
pub(crate) fn features(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let describe = |feature: &headway_policy::Feature| {
        let from = |world: fn(Source) -> &'static str| -> Vec<&str> {
            let all = feature.sources.iter().map(|&source| world(source));
            all.filter(|text| !text.is_empty()).collect()
        };
        let row = PyDict::new(py);
        row.set_item("name", feature.name)?;
        row.set_item("unit", feature.unit())?;
        row.set_item("help", feature.help)?;
        row.set_item("simulator", from(Source::simulator))?;
        row.set_item("kernel", from(Source::kernel))?;
        row.set_item("rounding", feature.rounding.text())?;
        Ok(row)
    };
    FEATURES.iter().map(describe).collect()
}
