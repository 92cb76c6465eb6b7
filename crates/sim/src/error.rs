//! Why a run cannot be had.

use headway_cc::{SchemeError, Time};

/// How packets count the links that they have left to cross.
pub(crate) type Hops = u8;
pub(crate) const MAX_HOPS: usize = Hops::MAX as usize;

impl SimulationError {
    /// Why this world or the scenario's routers cannot serve the scheme, if that is it.
    pub(crate) fn unserved(&self) -> Option<String> {
        match self {
            SimulationError::Needs(_, need) => Some(format!("this world does not supply {need}")),
            SimulationError::NoRouter { .. } => Some(
                "no router on the way is the scheme's other half, as router = \"scheme\" at the bottleneck makes it"
                    .to_owned(),
            ),
            SimulationError::OtherRouter { given, .. } => Some(format!(
                "router = \"scheme\" already stands for the other half of '{given}' there"
            )),
            _ => None,
        }
    }
}

/// A run that cannot be set up, or that cannot go on.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SimulationError {
    /// No path leads from one end of a flow to the other.
    #[error("no path leads from '{0}' to '{1}'")]
    NoPath(String, String),
    /// A scheme that the scenario names cannot be had.
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    /// A scheme needs what this world does not supply.
    #[error("scheme '{0}' needs {1}, which the world 'sim' does not supply")]
    Needs(&'static str, &'static str),
    /// A scheme has a half in the routers, and there is none on a flow's way.
    #[error(
        "scheme '{scheme}' needs a router on its way that is its other half; write router = \"scheme\" at the bottleneck, or queue = {{ kind = \"{router}\", packets = \"100pkt\" }}"
    )]
    NoRouter {
        /// The scheme.
        scheme: &'static str,
        /// The router's kind.
        router: &'static str,
    },
    /// Flows ask for two routers, and `router = "scheme"` makes one.
    #[error(
        "scheme '{scheme}' needs the router '{wanted}' on its way, where router = \"scheme\" stands for '{given}', which another flow's scheme needs; run them apart, or give '{scheme}' a link of its own with queue = {{ kind = \"{wanted}\", packets = \"100pkt\" }}"
    )]
    OtherRouter {
        /// The scheme.
        scheme: &'static str,
        /// Its router's kind.
        wanted: &'static str,
        /// The kind of the one that is there.
        given: &'static str,
    },
    /// A trace cannot be had.
    #[error("{0}")]
    Trace(String),
    /// A route is longer than a packet can count.
    #[error("the way from '{0}' to '{1}' has {2} links; a packet crosses at most {max}", max = MAX_HOPS + 1)]
    LongRoute(String, String, usize),
    /// Nothing holds a flow back: it would fill the memory.
    #[error(
        "flow {flow}, scheme '{scheme}': {packets} packets in flight at {at:?}, so nothing limits it; give a link on its way a rate or a shorter queue, or the scheme a window"
    )]
    Unlimited {
        /// The flow's index.
        flow: usize,
        /// What it ran.
        scheme: String,
        /// So many were allowed.
        packets: u64,
        /// When.
        at: Time,
    },
    /// A scheme's timer is due again and again, so that time stands still.
    #[error(
        "flow {flow}, scheme '{scheme}': {part} timer is still due after {times} calls of on_timer at {at:?}; on_timer has to move next_timer later"
    )]
    Stuck {
        /// The flow's index.
        flow: usize,
        /// What it ran.
        scheme: String,
        /// Whose timer: the controller's or the receiver's.
        part: &'static str,
        /// How often it was called.
        times: u32,
        /// When.
        at: Time,
    },
}
