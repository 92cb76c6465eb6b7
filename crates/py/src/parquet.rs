use std::path::Path;

use headway_record::{Values, read_table};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::usage;

/// Metadata and columns of a file.
#[pyfunction]
pub(crate) fn read_parquet<'py>(
    py: Python<'py>,
    path: &str,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
    let table = py.detach(|| read_table(Path::new(path))).map_err(usage)?;
    let (metadata, columns) = (PyDict::new(py), PyDict::new(py));
    for (key, text) in table.metadata {
        metadata.set_item(key, text)?;
    }
    for (name, values) in table.columns {
        match values {
            Values::Text(v) => columns.set_item(name, v)?,
            Values::Whole(v) => columns.set_item(name, v)?,
            Values::Real(v) => columns.set_item(name, v)?,
        }
    }
    Ok((metadata, columns))
}
