//! PyO3 bindings: no logic. `python/headway/_native.pyi` is the contract.

mod batch;
mod controllers;
mod env;
mod features;
mod learners;
mod models;
mod parquet;
mod scenario;
mod schemes;
#[cfg(target_os = "linux")]
mod shell;
mod switches;
mod trace;
mod worlds;

use std::path::PathBuf;

use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    headway._native,
    UsageError,
    PyValueError,
    "Wrong input: one line."
);
create_exception!(
    headway._native,
    RunError,
    PyRuntimeError,
    "Right input, but the run failed."
);

/// Version and commit of this code.
const CODE_VERSION: &str = env!("HEADWAY_CODE_VERSION");

/// Wrong input, as a Python exception.
fn usage(error: impl std::fmt::Display) -> PyErr {
    UsageError::new_err(error.to_string())
}

/// The folder of the traces that come with the package.
fn own_traces(py: Python<'_>) -> PyResult<PathBuf> {
    let package: PathBuf = py
        .import("headway")?
        .getattr("__path__")?
        .get_item(0)?
        .extract()?;
    Ok(package.join("data").join("traces"))
}

#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add("code_version", CODE_VERSION)?;
    m.add("agent_version", headway_policy::AgentSpec::VERSION)?;
    m.add("results_schema", headway_record::SCHEMA_VERSION)?;
    m.add("UsageError", m.py().get_type::<UsageError>())?;
    m.add("RunError", m.py().get_type::<RunError>())?;
    m.add_function(wrap_pyfunction!(schemes::schemes, m)?)?;
    m.add_function(wrap_pyfunction!(features::features, m)?)?;
    m.add_function(wrap_pyfunction!(schemes::check_scheme, m)?)?;
    m.add_function(wrap_pyfunction!(schemes::tunables, m)?)?;
    m.add_function(wrap_pyfunction!(schemes::canonical_scheme, m)?)?;
    m.add_function(wrap_pyfunction!(schemes::scheme_members, m)?)?;
    m.add_function(wrap_pyfunction!(models::check_model, m)?)?;
    m.add_function(wrap_pyfunction!(models::shipped_models, m)?)?;
    m.add_function(wrap_pyfunction!(learners::check_learner, m)?)?;
    m.add_function(wrap_pyfunction!(learners::all_shipped_learners, m)?)?;
    m.add_function(wrap_pyfunction!(learners::learn, m)?)?;
    m.add_function(wrap_pyfunction!(scenario::scenario_names, m)?)?;
    m.add_function(wrap_pyfunction!(trace::looks_like, m)?)?;
    m.add_function(wrap_pyfunction!(trace::split, m)?)?;
    m.add_function(wrap_pyfunction!(trace::trace_split, m)?)?;
    m.add_function(wrap_pyfunction!(parquet::read_parquet, m)?)?;
    #[cfg(target_os = "linux")]
    m.add_function(wrap_pyfunction!(worlds::emu::emu_worker, m)?)?;
    #[cfg(target_os = "linux")]
    m.add_function(wrap_pyfunction!(worlds::emu::find_headwayd, m)?)?;
    #[cfg(target_os = "linux")]
    m.add_function(wrap_pyfunction!(worlds::emu::refused_entry, m)?)?;
    #[cfg(target_os = "linux")]
    m.add_function(wrap_pyfunction!(shell::shell, m)?)?;
    #[cfg(target_os = "linux")]
    m.add_function(wrap_pyfunction!(shell::shells, m)?)?;
    #[cfg(target_os = "linux")]
    m.add_function(wrap_pyfunction!(shell::clean_shells, m)?)?;
    m.add_function(wrap_pyfunction!(env::check_agent, m)?)?;
    m.add_function(wrap_pyfunction!(env::measurements, m)?)?;
    m.add_function(wrap_pyfunction!(env::ends, m)?)?;
    m.add_class::<env::Environments>()?;
    m.add_class::<env::Flows>()?;
    m.add_class::<scenario::Scenario>()?;
    m.add_function(wrap_pyfunction!(switches::network_view, m)?)?;
    m.add_class::<switches::SimulatedNetwork>()?;
    m.add_class::<trace::Trace>()?;
    m.add_class::<batch::Batch>()
}
