//! How a run is set up.

use headway_cc::{Registry, Selection, Stream, Time};
use headway_record::{FlowMeter, Grid};
use headway_scenario::{FlowSpec, Network};

use super::{Options, Simulation, Slots, TraceSource};
use crate::cross::CrossTraffic;
use crate::error::{MAX_HOPS, SimulationError};
use crate::event_queue::EventQueue;
use crate::flow::Flow;
use crate::links::{build_link, discipline, router_of_schemes, set_loss};
use crate::measure::Sampler;
use crate::observer::Observer;
use crate::switches::Switches;

impl Simulation {
    /// Sets a run up: `test` is the scheme under test, `registry` knows those that the scenario names.
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
    /// As [`new`](Simulation::new), watched by `observer`.
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
        let named = |spec: &FlowSpec| spec.scheme.as_deref().map(|s| registry.select(s));
        let named = network.flows.iter().map(|f| named(f).transpose());
        let named = named.collect::<Result<Vec<_>, _>>()?;
        let router = router_of_schemes(network, test, registry);
        let mut links = Vec::with_capacity(network.links.len());
        let mut idle_losses = Vec::with_capacity(network.links.len());
        for (index, spec) in network.links.iter().enumerate() {
            let mut link = build_link(spec, router, traces, options.seed)?;
            let stream = Stream::new(options.seed, &format!("link.{}.loss", spec.name));
            idle_losses.push(set_loss(&mut link, spec.loss, stream));
            links.push(match observer.observes_link(index) {
                true => link.observed(),
                false => link,
            });
        }
        let routes = network.routes();
        let path = |from: usize, to: usize, route: Option<Vec<usize>>| {
            let names = || (network.nodes[from].clone(), network.nodes[to].clone());
            let path = route.unwrap_or_default();
            match path.len() {
                0 => Err(SimulationError::NoPath(names().0, names().1)),
                n if n - 1 > MAX_HOPS => Err(SimulationError::LongRoute(names().0, names().1, n)),
                _ => Ok(path.into_iter().map(|l| l as u32).collect::<Box<[u32]>>()),
            }
        };
        let mut flows = Vec::with_capacity(network.flows.len());
        for (i, spec) in network.flows.iter().enumerate() {
            let selection = named[i].as_ref().unwrap_or(test);
            if let Some(need) = crate::WORLD.lacks(selection.scheme) {
                return Err(SimulationError::Needs(selection.scheme.name, need.name()));
            }
            let (from, to, nodes) = (spec.from, spec.to, spec.route.as_deref());
            let both = (
                path(from, to, routes.there(from, to, nodes))?,
                path(to, from, routes.back(from, to, nodes))?,
            );
            if let Some(wanted) = selection.scheme.router
                && !both.0.iter().any(|&l| {
                    let discipline = discipline(&network.links[l as usize], router);
                    discipline.router() == Some(wanted)
                })
            {
                let (scheme, wanted) = (selection.scheme.name, wanted.name());
                let mut way = both.0.iter().map(|&l| &network.links[l as usize]);
                return Err(match router.filter(|_| way.any(|l| l.router_of_scheme)) {
                    Some(given) => SimulationError::OtherRouter {
                        scheme,
                        wanted,
                        given: given.name(),
                    },
                    None => SimulationError::NoRouter {
                        scheme,
                        router: wanted,
                    },
                });
            }
            let mut flow = Flow::new(i, spec, selection, network, both, options.seed);
            flow.meter = FlowMeter::new(Time::ZERO + options.warmup);
            flow.grid = options.grid.map(Grid::new);
            flows.push(flow);
        }
        let mut cross = Vec::with_capacity(network.cross.len());
        for (i, spec) in network.cross.iter().enumerate() {
            let stream = Stream::new(options.seed, &format!("cross.{i}"));
            let (from, to) = (spec.from, spec.to);
            let route = path(from, to, routes.there(from, to, spec.route.as_deref()))?;
            cross.push(CrossTraffic::new(i as u32, spec, route, stream));
        }
        let mut changes = network.changes.clone();
        changes.sort_by_key(|c| c.at);

        let end = Time::ZERO + options.duration;
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
            events.set(slots.senders + i, flow.start);
        }
        for (i, source) in cross.iter().enumerate() {
            events.set(slots.cross + i, source.next());
        }
        events.set(slots.change, changes.first().map_or(Time::NEVER, |c| c.at));
        events.set(slots.sample, Time::ZERO);
        events.set(
            slots.grid,
            options.grid.map_or(Time::NEVER, |g| Time::ZERO + g),
        );
        if let Some(switches) = &switches {
            events.set(slots.switches, switches.next());
        }
        let sampler = Sampler::new(&flows, Time::ZERO + options.warmup, end);
        Ok(Simulation {
            options,
            links,
            flows,
            cross,
            changes,
            next_change: 0,
            events,
            slots,
            now: Time::ZERO,
            sampler,
            switches,
            idle_losses,
            halt: Time::ZERO,
            failure: None,
            observer,
        })
    }
}
