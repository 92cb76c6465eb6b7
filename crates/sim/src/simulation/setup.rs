//! The setup of a run.

use headway_cc::{Registry, Router, Selection, Stream, Time};
use headway_net::Link;
use headway_scenario::{FlowSpec, Network};
use headway_world::{
    CrossTraffic, Measurement, Options, TraceSource, Ways, build_links, check_scheme, router_of_run,
};

use super::{Simulation, Slots};
use crate::WORLD;
use crate::error::SimulationError;
use crate::event_queue::EventQueue;
use crate::flow::Flow;
use crate::observer::Observer;
use crate::switches::Switches;

/// The router that a run's schemes need.
pub(crate) fn router_of_schemes(
    network: &Network,
    test: &Selection,
    registry: &Registry,
) -> Option<Router> {
    let of_scheme = |name: &str| registry.select(name).ok()?.scheme.router;
    router_of_run(network, test.scheme.router, of_scheme)
}

impl Simulation {
    /// Sets a run up: `test` is the scheme under test, `registry` knows those that the scenario
    /// names.
    ///
    /// # Errors
    /// [`SimulationError`]
    pub fn new(
        network: &Network,
        test: &Selection,
        registry: &Registry,
        traces: TraceSource<'_>,
        options: Options,
    ) -> Result<Simulation, SimulationError> {
        Simulation::observed(network, test, registry, traces, options, ())
    }
}

impl<O: Observer> Simulation<O> {
    /// Same as [`new`](Simulation::new), observed by `observer`.
    ///
    /// # Errors
    /// [`SimulationError`]
    pub fn observed(
        network: &Network,
        test: &Selection,
        registry: &Registry,
        traces: TraceSource<'_>,
        options: Options,
        observer: O,
    ) -> Result<Simulation<O>, SimulationError> {
        let select = |spec: &FlowSpec| match spec.scheme.as_deref() {
            Some(scheme) => registry.select(scheme),
            None => Ok(test.clone()),
        };
        let selections = network.flows.iter().map(select);
        let selections = selections.collect::<Result<Vec<_>, _>>()?;
        let router = router_of_schemes(network, test, registry);
        let (links, changes) = build_links(network, router, traces, options.seed)?;
        let observed = |(index, link): (usize, Link)| match observer.observes_link(index) {
            true => link.observed(),
            false => link,
        };
        let mut links: Vec<Link> = links.into_iter().enumerate().map(observed).collect();
        let ways = Ways::new(network);
        let mut flows = Vec::with_capacity(network.flows.len());
        for (i, (spec, selection)) in network.flows.iter().zip(&selections).enumerate() {
            let way = ways.of_flow(spec)?;
            check_scheme(&WORLD, selection.scheme, &way.data, network, router)?;
            flows.push(Flow::new(i, spec, selection, network, way, &options));
        }
        let mut cross = Vec::with_capacity(network.cross.len());
        for (i, spec) in network.cross.iter().enumerate() {
            let stream = Stream::new(options.seed, &format!("cross.{i}"));
            let route = ways.of_cross(spec)?;
            cross.push(CrossTraffic::new(i as u32, spec, route, stream));
        }

        let senders = links.len();
        let receivers = senders + flows.len();
        let slots = Slots {
            senders,
            receivers,
            cross: receivers + flows.len(),
            change: receivers + flows.len() + cross.len(),
            sample: receivers + flows.len() + cross.len() + 1,
            grid: receivers + flows.len() + cross.len() + 2,
            switches: receivers + flows.len() + cross.len() + 3,
        };
        let switches = Switches::new(network, &mut links).map(Box::new);
        let last = usize::from(switches.is_some());
        let mut events = EventQueue::new(links.len(), slots.switches + last);
        for (i, flow) in flows.iter().enumerate() {
            events.set(slots.senders + i, flow.measured.start);
        }
        for (i, source) in cross.iter().enumerate() {
            events.set(slots.cross + i, source.next());
        }
        events.set(slots.change, changes.next());
        events.set(slots.sample, Time::ZERO);
        events.set(
            slots.grid,
            options.grid.map_or(Time::NEVER, |g| Time::ZERO + g),
        );
        if let Some(switches) = &switches {
            events.set(slots.switches, switches.next());
        }
        let measurement = Measurement::new(&flows, options);
        Ok(Simulation {
            options,
            links,
            flows,
            cross,
            changes,
            events,
            slots,
            now: Time::ZERO,
            measurement,
            switches,
            halt: Time::ZERO,
            failure: None,
            held: Vec::new(),
            observer,
        })
    }
}
