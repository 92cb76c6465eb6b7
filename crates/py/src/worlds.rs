//! The worlds of this build.

use std::sync::Arc;

use headway_sim::Sim;
use headway_world::World;
use pyo3::prelude::*;

use crate::controllers::with_python;
#[cfg(target_os = "linux")]
use crate::schemes::registry;
use crate::usage;

/// Every world.
pub(crate) fn worlds(py: Python<'_>) -> PyResult<Vec<Arc<dyn World>>> {
    let sim = Arc::new(Sim::new(with_python()));
    #[cfg(target_os = "linux")]
    return Ok(vec![
        sim,
        Arc::new(emu::world(py)?),
        Arc::new(emu::kernel(py)?),
    ]);
    #[cfg(not(target_os = "linux"))]
    return Ok(vec![sim]);
}

/// The world with this name.
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

    use std::path::Path;

    use headway_emu::run::{Emu, Kernel, worker};
    use headway_machine::Machine;

    use super::*;

    /// World 2, in which runs are processes of this Python.
    pub(super) fn world(py: Python<'_>) -> PyResult<Emu> {
        Ok(Emu::new(registry(), worker_command(py)?))
    }

    /// World 3, in which runs are processes of this Python, too.
    pub(super) fn kernel(py: Python<'_>) -> PyResult<Kernel> {
        Ok(Kernel::new(registry(), worker_command(py)?))
    }

    fn worker_command(py: Python<'_>) -> PyResult<Vec<OsString>> {
        let code = "from headway._native import emu_worker; emu_worker()";
        let arguments = ["-P", "-c", code].map(OsString::from);
        Ok([vec![executable(py)?], arguments.to_vec()].concat())
    }

    fn executable(py: Python<'_>) -> PyResult<OsString> {
        py.import("sys")?.getattr("executable")?.extract()
    }

    #[pyfunction]
    pub(crate) fn find_headwayd(py: Python<'_>) -> PyResult<String> {
        let python = executable(py)?;
        let found = headway_emu::run::find_headwayd(Path::new(&python).parent());
        found.map(|path| path.display().to_string()).map_err(usage)
    }

    #[pyfunction]
    pub(crate) fn refused_entry(number: i32) -> String {
        Machine::here().entry(&std::io::Error::from_raw_os_error(number))
    }

    #[pyfunction]
    pub(crate) fn emu_worker(py: Python<'_>) {
        py.detach(|| worker(&registry()));
    }
}
