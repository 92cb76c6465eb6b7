//! The worlds that this build has.

use std::sync::Arc;

use headway_sim::Sim;
use headway_world::World;
use pyo3::prelude::*;

use crate::schemes::registry;
use crate::usage;

/// Every world.
pub(crate) fn worlds() -> Vec<Arc<dyn World>> {
    vec![Arc::new(Sim::new(registry()))]
}

/// The world of that name.
pub(crate) fn world_named(name: &str) -> PyResult<Arc<dyn World>> {
    let worlds = worlds();
    let names: Vec<&str> = worlds.iter().map(|w| w.about().name).collect();
    let wrong = || {
        usage(format!(
            "unknown world '{name}'; worlds are {}",
            names.join(", ")
        ))
    };
    let found = worlds.iter().find(|w| w.about().name == name);
    found.cloned().ok_or_else(wrong)
}
