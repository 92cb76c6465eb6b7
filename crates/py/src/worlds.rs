//! The worlds that this build has.

use std::sync::Arc;

use headway_sim::Sim;
use headway_world::World;
use pyo3::prelude::*;

use crate::schemes::registry;
use crate::usage;

/// Every world.
pub(crate) fn worlds(py: Python<'_>) -> PyResult<Vec<Arc<dyn World>>> {
    let sim = Arc::new(Sim::new(registry()));
    #[cfg(target_os = "linux")]
    return Ok(vec![sim, Arc::new(emu::world(py)?)]);
    #[cfg(not(target_os = "linux"))]
    return Ok(vec![sim]);
}

/// The world of that name.
pub(crate) fn world_named(py: Python<'_>, name: &str) -> PyResult<Arc<dyn World>> {
    let worlds = worlds(py)?;
    let names: Vec<&str> = worlds.iter().map(|w| w.about().name).collect();
    let wrong = || {
        usage(format!(
            "unknown world '{name}'; worlds here are {}",
            names.join(", ")
        ))
    };
    let found = worlds.iter().find(|w| w.about().name == name);
    found.cloned().ok_or_else(wrong)
}

#[cfg(target_os = "linux")]
pub(crate) mod emu {
    use std::ffi::OsString;

    use headway_emu::run::{Emu, worker};

    use super::*;

    /// World 2, whose runs are processes of this Python.
    pub(super) fn world(py: Python<'_>) -> PyResult<Emu> {
        let python: OsString = py.import("sys")?.getattr("executable")?.extract()?;
        let code = "from headway._native import emu_worker; emu_worker()";
        let arguments = ["-P", "-c", code].map(OsString::from);
        let command = [vec![python], arguments.to_vec()].concat();
        Ok(Emu::new(registry(), command))
    }

    #[pyfunction]
    pub(crate) fn emu_worker(py: Python<'_>) {
        py.detach(|| worker(&registry()));
    }
}
