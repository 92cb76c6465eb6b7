//! Finds the ways of packets through a scenario's network, and says why a run cannot be set up.

use headway_cc::{Router, Scheme, SchemeError, World};
use headway_scenario::{CrossSpec, FlowSpec, Network, Routes};

use crate::links::discipline;

/// The number of links that a packet still has to cross.
pub type Hops = u8;
/// A packet crosses at most one link more than this.
pub const MAX_HOPS: usize = Hops::MAX as usize;

/// The links that a flow's packets cross, by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The links that data crosses.
    pub data: Box<[u32]>,
    /// The links that acknowledgements cross.
    pub acks: Box<[u32]>,
}

/// Finds the ways of packets.
#[derive(Clone, Debug)]
pub struct Ways<'a> {
    network: &'a Network,
    routes: Routes,
}

impl<'a> Ways<'a> {
    /// Finds ways through this network.
    pub fn new(network: &'a Network) -> Ways<'a> {
        let routes = network.routes();
        Ways { network, routes }
    }

    /// The way of a flow, there and back.
    ///
    /// # Errors
    /// [`SetupError::NoPath`] and [`SetupError::LongRoute`]
    pub fn of_flow(&self, flow: &FlowSpec) -> Result<Way, SetupError> {
        let (from, to, nodes) = (flow.from, flow.to, flow.route.as_deref());
        Ok(Way {
            data: self.checked(from, to, self.routes.there(from, to, nodes))?,
            acks: self.checked(to, from, self.routes.back(from, to, nodes))?,
        })
    }

    /// The links that cross traffic crosses.
    ///
    /// # Errors
    /// The same as [`of_flow`](Self::of_flow).
    pub fn of_cross(&self, cross: &CrossSpec) -> Result<Box<[u32]>, SetupError> {
        let (from, to) = (cross.from, cross.to);
        self.checked(
            from,
            to,
            self.routes.there(from, to, cross.route.as_deref()),
        )
    }

    fn checked(
        &self,
        from: usize,
        to: usize,
        links: Option<Vec<usize>>,
    ) -> Result<Box<[u32]>, SetupError> {
        let name = |node: usize| self.network.nodes[node].clone();
        let links = links.unwrap_or_default();
        match links.len() {
            0 => Err(SetupError::NoPath(name(from), name(to))),
            n if n - 1 > MAX_HOPS => Err(SetupError::LongRoute(name(from), name(to), n)),
            _ => Ok(links.into_iter().map(|l| l as u32).collect()),
        }
    }
}

/// Checks that `scheme` can run in `world`, with its data over these links. `router` is the one
/// that the run's schemes need.
///
/// # Errors
/// [`SetupError::Needs`], [`SetupError::NoRouter`] and [`SetupError::OtherRouter`]
pub fn check_scheme(
    world: &World,
    scheme: &Scheme,
    data: &[u32],
    network: &Network,
    router: Option<Router>,
) -> Result<(), SetupError> {
    match world.lacks(scheme) {
        Some(need) => Err(SetupError::Needs {
            scheme: scheme.name,
            need: need.name(),
            world: world.name,
        }),
        None => check_router(scheme, data, network, router),
    }
}

/// Checks that a scheme with a half in a router has one on its way.
fn check_router(
    scheme: &Scheme,
    data: &[u32],
    network: &Network,
    router: Option<Router>,
) -> Result<(), SetupError> {
    let Some(wanted) = scheme.router else {
        return Ok(());
    };
    let mut way = data.iter().map(|&l| &network.links[l as usize]);
    if way
        .clone()
        .any(|link| discipline(link, router).router() == Some(wanted))
    {
        return Ok(());
    }
    let (scheme, wanted) = (scheme.name, wanted.name());
    Err(match router.filter(|_| way.any(|l| l.router_of_scheme)) {
        Some(given) => SetupError::OtherRouter {
            scheme,
            wanted,
            given: given.name(),
        },
        None => SetupError::NoRouter {
            scheme,
            router: wanted,
        },
    })
}

/// Why a run cannot be set up.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SetupError {
    /// No path leads from one end of a flow to the other.
    #[error("no path leads from '{0}' to '{1}'")]
    NoPath(String, String),
    /// A scheme that the scenario names is not available.
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    /// A scheme needs something that this world does not supply.
    #[error("scheme '{scheme}' needs {need}, which the world '{world}' does not supply")]
    Needs {
        /// The scheme.
        scheme: &'static str,
        /// The scheme's need.
        need: &'static str,
        /// The world.
        world: &'static str,
    },
    /// This world cannot run the scheme, in general or on this machine.
    #[error("scheme '{scheme}': {why}")]
    Unserved {
        /// The scheme, as the user wrote it.
        scheme: String,
        /// The reason, and what would be right.
        why: String,
    },
    /// A scheme has a half in routers, and there is none on a flow's way.
    #[error(
        "scheme '{scheme}' needs a router on its way that is its other half; write router = \"scheme\" at the bottleneck, or queue = {{ kind = \"{router}\", packets = \"100pkt\" }}"
    )]
    NoRouter {
        /// The scheme.
        scheme: &'static str,
        /// The router's kind.
        router: &'static str,
    },
    /// Flows need two different routers, and `router = "scheme"` makes one.
    #[error(
        "scheme '{scheme}' needs the router '{wanted}' on its way, where router = \"scheme\" stands for '{given}', which another flow's scheme needs; run them apart, or give '{scheme}' a link of its own with queue = {{ kind = \"{wanted}\", packets = \"100pkt\" }}"
    )]
    OtherRouter {
        /// The scheme.
        scheme: &'static str,
        /// The kind of the scheme's router.
        wanted: &'static str,
        /// The kind of the existing one.
        given: &'static str,
    },
    /// A trace is not available.
    #[error("{0}")]
    Trace(String),
    /// A route has more links than a packet can count.
    #[error("the way from '{0}' to '{1}' has {2} links; a packet crosses at most {max}", max = MAX_HOPS + 1)]
    LongRoute(String, String, usize),
}

impl SetupError {
    /// Why this world or the scenario's routers cannot serve the scheme, if this is such an error.
    pub fn unserved(&self) -> Option<String> {
        match self {
            SetupError::Needs { need, .. } => Some(format!("this world does not supply {need}")),
            SetupError::Unserved { why, .. } => Some(why.clone()),
            SetupError::NoRouter { .. } => Some(
                "no router on the way is the scheme's other half, as router = \"scheme\" at the bottleneck makes it"
                    .to_owned(),
            ),
            SetupError::OtherRouter { given, .. } => Some(format!(
                "router = \"scheme\" already stands for the other half of '{given}' there"
            )),
            _ => None,
        }
    }
}
