//! The scenario schema that every world reads: networks and traffic as strict TOML.
//!
//! [`Scenario`] is a checked file (or one member of a family that a file describes), in which a
//! quantity may be a range; [`Scenario::draw`] fixes every range by a seed and gives a [`Network`].
//! [`TraceStore`] finds the traces that links follow. `docs/scenarios.md` describes the schema for
//! users.

mod collections;
mod draw;
mod error;
mod impairment;
mod network;
mod parse;
mod plan;
mod quantity;
mod queue;
mod reader;
mod route;
mod scenario;
mod split;
mod store;
mod sweep;
mod switches;

pub use collections::collection_of;
pub use error::ScenarioError;
pub use network::*;
pub use route::Routes;
pub use scenario::{Scenario, shipped};
pub use split::{Part, Seconds, Shares, split};
pub use store::{StoreError, TraceStore, load_trace};
pub use sweep::Sweep;
