use headway_cc::{Kind, Param, Registry, schemes::SCHEMES};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::usage;
use crate::worlds::{world_named, worlds};

/// Every scheme that the hosts know.
pub(crate) fn registry() -> Registry {
    let mut registry = Registry::new(SCHEMES);
    registry.add(headway_policy::schemes::SCHEMES);
    registry
}

#[pyfunction]
pub(crate) fn schemes(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let worlds = worlds(py)?;
    let describe = |scheme: &headway_cc::Scheme| {
        let row = PyDict::new(py);
        row.set_item("name", scheme.name)?;
        row.set_item("family", scheme.family.name())?;
        row.set_item("summary", scheme.summary)?;
        row.set_item("source", scheme.source)?;
        row.set_item("deviations", scheme.deviations)?;
        row.set_item(
            "needs",
            scheme.needs.iter().map(|n| n.name()).collect::<Vec<_>>(),
        )?;
        let serving = worlds.iter().filter(|w| w.serves(scheme));
        row.set_item(
            "worlds",
            serving.map(|w| w.about().name).collect::<Vec<_>>(),
        )?;
        let params = scheme
            .params
            .iter()
            .map(|p| describe_param(py, p))
            .collect::<PyResult<Vec<_>>>()?;
        row.set_item("params", PyList::new(py, params)?)?;
        Ok(row)
    };
    registry().iter().map(describe).collect()
}

fn describe_param<'py>(py: Python<'py>, param: &Param) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("name", param.name)?;
    row.set_item("help", param.help)?;
    row.set_item("kind", param.kind.to_string())?;
    let default = match param.kind {
        Kind::Number { default, .. } => default.to_string(),
        Kind::Count { default, .. } => default.to_string(),
        Kind::Time { default, .. } => format!("{default:?}"),
        Kind::Rate { default, .. } => format!("{default:?}"),
        Kind::Choice(words) => words[0].to_owned(),
        Kind::Switch => "off".to_owned(),
        Kind::Loaded { default, .. } => default.unwrap_or_default().to_owned(),
    };
    row.set_item("default", default)?;
    row.set_item("required", param.is_required())?;
    Ok(row)
}

/// The parameters that a policy may set while a flow runs, with the scheme that has them. Times are
/// in seconds, rates in bit/s.
#[pyfunction]
pub(crate) fn tunables(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let mut rows = Vec::new();
    for (scheme, params) in headway_policy::tunables() {
        for param in params {
            let row = PyDict::new(py);
            row.set_item("scheme", scheme)?;
            row.set_item("name", param.name)?;
            row.set_item("default", param.kind.default_number())?;
            row.set_item("min", param.kind.within(f64::NEG_INFINITY))?;
            row.set_item("max", param.kind.within(f64::INFINITY))?;
            row.set_item("is_whole", matches!(param.kind, Kind::Count { .. }))?;
            row.set_item("is_time", matches!(param.kind, Kind::Time { .. }))?;
            rows.push(row);
        }
    }
    Ok(rows)
}

#[pyfunction]
pub(crate) fn check_scheme(spec: &str) -> PyResult<String> {
    registry().select(spec).map(|s| s.spec).map_err(usage)
}

#[pyfunction]
pub(crate) fn scheme_members(spec: &str) -> Vec<String> {
    headway_cc::members(spec)
}

#[pyfunction]
pub(crate) fn canonical_scheme(py: Python<'_>, spec: &str, world: &str) -> PyResult<String> {
    world_named(py, world)?.canonical(spec).map_err(usage)
}
