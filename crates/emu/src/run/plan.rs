//! The plan of a run, worked out before anything is made.

use headway_cc::{Registry, Router, Stream};
use headway_net::Link;
use headway_scenario::{Network, Source};
use headway_world::{
    Changes, CrossTraffic, Options, RunError, SetupError, TraceSource, Way, Ways, build_links,
    check_scheme, router_of_run,
};

use super::hosting::Hosting;
use crate::host::Driver;
use crate::sys::Tun;

/// The plan of a run: what carries each flow, and over which links.
#[derive(Debug)]
pub struct Plan {
    pub(super) network: Network,
    pub(super) options: Options,
    pub(super) flows: Vec<PlannedFlow>,
    /// The routes of cross traffic.
    pub(super) cross: Vec<Box<[u32]>>,
    pub(super) router: Option<Router>,
}

/// A flow: its scheme, what carries it, and its way.
#[derive(Debug)]
pub(super) struct PlannedFlow {
    pub scheme: String,
    pub driver: Driver,
    pub way: Way,
}

impl Plan {
    /// The most flows in a run: each has two threads.
    pub const MOST_FLOWS: usize = 256;
    /// The smallest packet; a smaller one has no room for headers and data.
    pub const MIN_PACKET: u64 = 128;

    /// Plans a run of world `emu`. `test` is the scheme under test.
    ///
    /// # Errors
    /// [`RunError`], if this world cannot carry it.
    pub fn new(
        network: &Network,
        test: &str,
        registry: &Registry,
        options: Options,
    ) -> Result<Plan, RunError> {
        Plan::hosted(network, test, &Hosting::Emu, registry, options)
    }

    /// Same as [`new`](Self::new), for a world with this `hosting`.
    pub(super) fn hosted(
        network: &Network,
        test: &str,
        hosting: &Hosting,
        registry: &Registry,
        options: Options,
    ) -> Result<Plan, RunError> {
        let world = hosting.world();
        check_size(network, world.name)?;
        let driver = |scheme: &str| hosting.driver(scheme, registry);
        let router_of = |scheme: &str| router_of_driver(&driver(scheme).ok()?);
        let router = router_of_run(network, router_of(test), router_of);
        let ways = Ways::new(network);
        let mut flows = Vec::with_capacity(network.flows.len());
        for spec in &network.flows {
            let scheme = spec.scheme.as_deref().unwrap_or(test);
            let driver = driver(scheme)?;
            let way = ways.of_flow(spec)?;
            if let Driver::Udp(selection) = &driver {
                check_scheme(&world, selection.scheme, &way.data, network, router)?;
            }
            flows.push(PlannedFlow {
                scheme: scheme.to_owned(),
                driver,
                way,
            });
        }
        let cross = network.cross.iter().map(|c| ways.of_cross(c));
        Ok(Plan {
            network: network.clone(),
            options,
            flows,
            cross: cross.collect::<Result<_, _>>()?,
            router,
        })
    }

    /// The links, observed as an emulator needs them, and the changes to them.
    pub(super) fn links(
        &self,
        traces: TraceSource<'_>,
    ) -> Result<(Vec<Link>, Changes), SetupError> {
        let (links, changes) = build_links(&self.network, self.router, traces, self.options.seed)?;
        let observed = links.into_iter().map(Link::observed);
        Ok((observed.collect(), changes))
    }

    /// The cross traffic, the same as in the simulator.
    pub(super) fn cross_traffic(&self) -> Vec<CrossTraffic> {
        let specs = self.network.cross.iter().zip(&self.cross).enumerate();
        specs
            .map(|(index, (spec, route))| {
                let stream = Stream::new(self.options.seed, &format!("cross.{index}"));
                CrossTraffic::new(index as u32, spec, route.clone(), stream)
            })
            .collect()
    }

    /// Does the kernel carry any of the flows?
    pub(super) fn has_kernel_flows(&self) -> bool {
        let mut drivers = self.flows.iter().map(|flow| &flow.driver);
        drivers.any(|driver| driver.controller().is_some())
    }

    /// Are all flows clocked by acknowledgements alone? Our own transport, over UDP, has timers,
    /// and so has an application that sends at a rate or at times.
    pub(super) fn is_clocked_by_acks(&self) -> bool {
        let mut flows = self.flows.iter().zip(&self.network.flows);
        flows.all(|(flow, spec)| {
            let is_always_ready = matches!(spec.source, Source::Bulk | Source::Finite(_));
            flow.driver.controller().is_some() && is_always_ready
        })
    }

    /// The nodes at which a flow begins or ends, in order.
    pub(super) fn hosts(&self) -> Vec<usize> {
        let ends = self.network.flows.iter().flat_map(|f| [f.from, f.to]);
        let mut hosts: Vec<usize> = ends.collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }
}

fn router_of_driver(driver: &Driver) -> Option<Router> {
    match driver {
        Driver::Udp(selection) => selection.scheme.router,
        Driver::Kernel(_) | Driver::Agent(_) => None,
    }
}

fn check_size(network: &Network, world: &str) -> Result<(), RunError> {
    let (flows, packet) = (network.flows.len(), network.packet_size.get());
    let sizes = Plan::MIN_PACKET..=Tun::MTU as u64;
    let why = if flows > Plan::MOST_FLOWS {
        format!(
            "{flows} flows; the world '{world}' carries at most {}",
            Plan::MOST_FLOWS
        )
    } else if !sizes.contains(&packet) {
        format!(
            "packets of {packet} bytes; the world '{world}' carries from {} to {}",
            sizes.start(),
            sizes.end()
        )
    } else {
        return Ok(());
    };
    Err(RunError::Failed(why))
}
