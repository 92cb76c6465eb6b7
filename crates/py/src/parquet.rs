use std::collections::HashMap;
use std::path::Path;

use headway_record::{Table, Values};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::usage;

/// Metadata and columns of a file.
#[pyfunction]
pub(crate) fn read_parquet<'py>(
    py: Python<'py>,
    path: &str,
) -> PyResult<(HashMap<String, String>, Bound<'py, PyDict>)> {
    let table = Table::open(Path::new(path)).map_err(usage)?;
    let columns = PyDict::new(py);
    for (index, name) in table.names().into_iter().enumerate() {
        // A signal ends the reading of a large file.
        py.check_signals()?;
        match py.detach(|| table.column(index)).map_err(usage)? {
            Values::Text(values) => columns.set_item(name, texts(py, &values)?)?,
            Values::Whole(values) => columns.set_item(name, PyArray1::from_vec(py, values))?,
            Values::Real(values) => {
                let values = values.into_iter().map(|v| v.unwrap_or(f64::NAN));
                columns.set_item(name, PyArray1::from_iter(py, values))?;
            }
        }
    }
    Ok((table.footer(), columns))
}

/// Equal texts become one object, because most rows of a column have the same text.
fn texts<'py>(py: Python<'py>, values: &[Option<String>]) -> PyResult<Bound<'py, PyList>> {
    let mut known = HashMap::new();
    PyList::new(
        py,
        values.iter().map(|value| {
            let text = value.as_deref()?;
            let known = known.entry(text).or_insert_with(|| PyString::new(py, text));
            Some(known.clone())
        }),
    )
}
