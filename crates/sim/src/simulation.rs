//! One run: the event loop.

use headway_cc::{Bytes, Duration, Ecn, Registry, SchemeError, Selection, Stream, Time};
use headway_net::queue::{DropTail, Limits};
use headway_net::trace::Trace;
use headway_net::{Ack, Body, Link, Packet, RandomLoss, Segment, Server};
use headway_record::{Convergence, FlowMeter, Grid, GridSample};
use headway_scenario::{LinkSpec, Network, QueueSpec, RateSpec};

use std::sync::Arc;

use crate::cross::CrossTraffic;
use crate::event_queue::EventQueue;
use crate::flow::Flow;

/// What a run is told beyond its network.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long it lasts.
    pub duration: Duration,
    /// How much of its beginning the metrics leave out.
    pub warmup: Duration,
    /// Seeds every random draw of the run.
    pub seed: u64,
    /// The bins of the time series, if they are wanted.
    pub grid: Option<Duration>,
}

/// A run that cannot be set up.
#[derive(Debug, thiserror::Error)]
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
    /// A trace cannot be had.
    #[error("{0}")]
    Trace(String),
}

/// A simulation under way.
#[derive(Debug)]
pub struct Simulation {
    pub(crate) options: Options,
    pub(crate) links: Vec<Link>,
    pub(crate) flows: Vec<Flow>,
    cross: Vec<CrossTraffic>,
    changes: Vec<headway_scenario::Change>,
    next_change: usize,
    events: EventQueue,
    slots: Slots,
    now: Time,
    packet_size: f64,
    pub(crate) sampler: Sampler,
}

/// Which slot of the event queue belongs to what: links, senders, receivers, cross traffic, then these.
#[derive(Clone, Copy, Debug)]
struct Slots {
    senders: usize,
    receivers: usize,
    cross: usize,
    change: usize,
    sample: usize,
    grid: usize,
}

type Reading = Vec<(f64, f64)>;

/// What is read off the links while the run goes on.
#[derive(Debug)]
pub(crate) struct Sampler {
    /// When the last second ended, and (offered, served) bytes of each link then; (0, 0) for links
    /// without a rate.
    second: (Time, Reading),
    /// Likewise at the ends of the grid's bins.
    pub(crate) bins: Vec<Reading>,
    /// Likewise when measuring begins and ends.
    pub(crate) window: [Reading; 2],
    pub(crate) window_at: [Time; 2],
}

impl Simulation {
    /// Sets a run up: `test` is the scheme under test, `registry` knows those that the scenario names.
    ///
    /// # Errors
    /// [`SimulationError`]
    pub fn new(
        network: &Network,
        test: &Selection,
        registry: &Registry,
        traces: &dyn Fn(&str) -> Result<Arc<Trace>, String>,
        options: Options,
    ) -> Result<Simulation, SimulationError> {
        let links = network
            .links
            .iter()
            .map(|spec| build_link(spec, traces, options.seed))
            .collect::<Result<Vec<_>, _>>()?;
        let routes = network.routes();
        let path = |from: usize, to: usize| {
            routes
                .between(from, to)
                .filter(|path| !path.is_empty())
                .map(|path| {
                    path.into_iter()
                        .map(|link| link as u32)
                        .collect::<Box<[u32]>>()
                })
                .ok_or_else(|| {
                    SimulationError::NoPath(network.nodes[from].clone(), network.nodes[to].clone())
                })
        };
        let mut flows = Vec::with_capacity(network.flows.len());
        for (i, spec) in network.flows.iter().enumerate() {
            let named = spec
                .scheme
                .as_deref()
                .map(|s| registry.select(s))
                .transpose()?;
            let selection = named.as_ref().unwrap_or(test);
            if let Some(need) = crate::WORLD.lacks(selection.scheme) {
                return Err(SimulationError::Needs(selection.scheme.name, need.name()));
            }
            let both = (path(spec.from, spec.to)?, path(spec.to, spec.from)?);
            let mut flow = Flow::new(i, spec, selection, network, both, options.seed);
            flow.meter = FlowMeter::new(Time::ZERO + options.warmup);
            flow.grid = options.grid.map(Grid::new);
            flows.push(flow);
        }
        let mut cross = Vec::with_capacity(network.cross.len());
        for (i, spec) in network.cross.iter().enumerate() {
            let stream = Stream::new(options.seed, &format!("cross.{i}"));
            cross.push(CrossTraffic::new(
                i as u32,
                spec,
                path(spec.from, spec.to)?,
                stream,
            ));
        }
        let mut changes = network.changes.clone();
        changes.sort_by_key(|c| c.at);

        let end = Time::ZERO + options.duration;
        let tested = || flows.iter().filter(|f| f.under_test);
        let first = tested().map(|f| f.start).min().unwrap_or(Time::ZERO);
        let last = tested().map(|f| f.stop).max().unwrap_or(end).min(end);
        let window_at = [first.max(Time::ZERO + options.warmup).min(end), last];
        let senders = links.len();
        let receivers = senders + flows.len();
        let slots = Slots {
            senders,
            receivers,
            cross: receivers + flows.len(),
            change: receivers + flows.len() + cross.len(),
            sample: receivers + flows.len() + cross.len() + 1,
            grid: receivers + flows.len() + cross.len() + 2,
        };
        let mut events = EventQueue::new(links.len(), slots.grid + 1);
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
        let sampler = Sampler {
            second: (Time::ZERO, Vec::new()),
            bins: Vec::new(),
            window: [Vec::new(), Vec::new()],
            window_at,
        };
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
            packet_size: network.packet_size.as_f64(),
            sampler,
        })
    }

    /// The time now.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Carries out every event up to and at `until`, but not beyond the run's end.
    pub fn run_until(&mut self, until: Time) {
        let until = until.min(Time::ZERO + self.options.duration);
        loop {
            let (time, slot) = self.events.peek();
            if time > until {
                break;
            }
            self.now = time;
            if slot < self.slots.senders {
                self.on_link(slot);
            } else if slot < self.slots.receivers {
                self.on_sender(slot - self.slots.senders);
            } else if slot < self.slots.cross {
                self.on_receiver(slot - self.slots.receivers);
            } else if slot < self.slots.change {
                self.on_cross(slot - self.slots.cross);
            } else if slot == self.slots.change {
                self.on_change();
            } else if slot == self.slots.sample {
                self.on_sample();
            } else {
                self.on_grid();
            }
        }
        self.now = until;
    }

    fn on_link(&mut self, index: usize) {
        let link = &mut self.links[index];
        if let Some(packet) = link.deliver(self.now) {
            self.events.set(index, link.next_delivery());
            self.arrive(packet);
        } else {
            // A part of a packet left, or a packet that a change has moved.
            self.events.set(index, link.next_delivery());
        }
    }

    /// A packet has crossed a link: on to the next, or it has arrived.
    #[inline(always)]
    fn arrive(&mut self, mut packet: Packet) {
        let index = packet.flow as usize;
        if packet.hops_left > 0 {
            let route = match &packet.body {
                Body::Data(_) => &self.flows[index].data_route,
                Body::Ack(_) => &self.flows[index].ack_route,
                Body::Cross => &self.cross[index].route,
            };
            let next = route[route.len() - usize::from(packet.hops_left)];
            packet.hops_left -= 1;
            self.enter(next, &packet);
            return;
        }
        match &packet.body {
            Body::Data(segment) => self.on_data(index, segment, packet.size(), packet.ecn),
            Body::Ack(ack) => self.on_ack(index, ack),
            Body::Cross => {}
        }
    }

    fn on_data(&mut self, index: usize, segment: &Segment, size: Bytes, ecn: Ecn) {
        let flow = &mut self.flows[index];
        let ack = flow.on_data(self.now, segment, size, ecn);
        let (first, timer) = (flow.first_ack_link, flow.next_receiver_timer());
        if let Some(ack) = ack {
            self.enter(first, &ack);
        }
        if timer < Time::NEVER {
            self.events.set_earlier(self.slots.receivers + index, timer);
        }
    }

    fn on_ack(&mut self, index: usize, ack: &Ack) {
        let flow = &mut self.flows[index];
        if !flow.host.delays(self.now, ack) {
            flow.on_ack(self.now, ack);
        }
        self.pump(index);
    }

    #[inline(always)]
    fn enter(&mut self, link: u32, packet: &Packet) {
        let index = link as usize;
        if self.links[index].arrive(self.now, packet) {
            awaken(&mut self.events, index, &self.links[index]);
        }
    }

    /// Sends what the sender has to send and notes when it wants to be woken.
    #[inline]
    fn pump(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let first = flow.first_link as usize;
        while let Some(packet) = flow.poll(self.now) {
            if self.links[first].arrive(self.now, &packet) {
                awaken(&mut self.events, first, &self.links[first]);
            }
        }
        let wake = flow.next_wake();
        if wake < flow.wake_at {
            flow.wake_at = wake;
            self.events.set_earlier(self.slots.senders + index, wake);
        }
    }

    /// A sender's slot may fire early, since its timers mostly move later: it only sets itself anew then.
    fn on_sender(&mut self, index: usize) {
        self.flows[index].on_wake(self.now);
        self.flows[index].wake_at = Time::NEVER;
        self.pump(index);
        self.events
            .set(self.slots.senders + index, self.flows[index].wake_at);
    }

    fn on_receiver(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        if let Some(ack) = flow.on_receiver_timer(self.now) {
            let first = flow.ack_route[0];
            self.enter(first, &ack);
        }
        self.events.set(
            self.slots.receivers + index,
            self.flows[index].next_receiver_timer(),
        );
    }

    fn on_cross(&mut self, index: usize) {
        let packet = self.cross[index].emit(self.now);
        self.enter(self.cross[index].route[0], &packet);
        self.events
            .set(self.slots.cross + index, self.cross[index].next());
    }

    fn on_change(&mut self) {
        while let Some(change) = self
            .changes
            .get(self.next_change)
            .filter(|c| c.at <= self.now)
            .cloned()
        {
            self.next_change += 1;
            let link = &mut self.links[change.link];
            if let Some(rate) = change.rate {
                link.set_rate(self.now, rate);
            }
            if let Some(delay) = change.delay {
                link.set_delay(self.now, delay);
            }
            if let Some(probability) = change.loss {
                let name = format!("link.{}.loss.{}", change.link, self.next_change);
                let stream = Stream::new(self.options.seed, &name);
                link.set_loss((probability > 0.0).then_some(RandomLoss {
                    probability,
                    stream,
                }));
            }
            self.events.set(change.link, link.next_delivery());
        }
        let next = self
            .changes
            .get(self.next_change)
            .map_or(Time::NEVER, |c| c.at);
        self.events.set(self.slots.change, next);
    }

    fn on_sample(&mut self) {
        let now = self.now;
        let reading = self.read_links();
        for (at, window) in self
            .sampler
            .window_at
            .into_iter()
            .zip(&mut self.sampler.window)
        {
            if at == now {
                window.clone_from(&reading);
            }
        }
        let (last, before) = &self.sampler.second;
        if now == *last + Convergence::BIN {
            watch_convergence(&mut self.flows, (*last, now), before, &reading);
        }
        if now == Time::ZERO || now == *last + Convergence::BIN {
            self.sampler.second = (now, reading);
        }
        let next_second = self.sampler.second.0 + Convergence::BIN;
        let next = self
            .sampler
            .window_at
            .into_iter()
            .filter(|&t| t > now)
            .fold(next_second, Time::min);
        self.events.set(self.slots.sample, next);
    }

    fn on_grid(&mut self) {
        let now = self.now;
        let reading = self.read_links();
        self.sampler.bins.push(reading);
        for flow in &mut self.flows {
            if let Some(grid) = &mut flow.grid
                && flow.started
            {
                let cwnd = flow.sender.control().cwnd;
                let cwnd_packets = match cwnd {
                    Bytes::MAX => f64::NAN,
                    _ => cwnd.as_f64() / self.packet_size,
                };
                grid.on_bin_end(now, GridSample { cwnd_packets });
            }
        }
        let next = self.options.grid.map_or(Time::NEVER, |g| now + g);
        self.events.set(self.slots.grid, next);
    }

    /// (offered, served) bytes of every link so far; (0, 0) for links without a rate.
    fn read_links(&mut self) -> Vec<(f64, f64)> {
        let now = self.now;
        let read = |link: &mut Link| match link.offered_until(now) {
            Some(offered) => (offered, link.counters(now).served_bytes as f64),
            None => (0.0, 0.0),
        };
        self.links.iter_mut().map(read).collect()
    }
}

/// Tells each flow that was there from `from` to `to` what arrived and what its share would have
/// been: the capacity of its slowest link over the number of flows that were there.
fn watch_convergence(
    flows: &mut [Flow],
    (from, to): (Time, Time),
    before: &Reading,
    after: &Reading,
) {
    let active = flows.iter().filter(|f| f.overlaps(from, to)).count().max(1) as f64;
    for flow in flows {
        let capacity = |&l: &u32| Some(after.get(l as usize)?.0 - before.get(l as usize)?.0);
        let capacities = flow
            .data_route
            .iter()
            .filter_map(capacity)
            .filter(|c| *c > 0.0);
        let share = capacities.reduce(f64::min).unwrap_or(0.0) / active;
        let received = flow.meter.take_recent() as f64;
        if flow.covers(from, to) {
            flow.convergence.on_second(received, share);
        }
    }
}

/// A link that was at rest has something to deliver: rare under load.
#[cold]
#[inline(never)]
fn awaken(events: &mut EventQueue, index: usize, link: &Link) {
    events.set(index, link.next_delivery());
}

fn build_link(
    spec: &LinkSpec,
    traces: &dyn Fn(&str) -> Result<Arc<Trace>, String>,
    seed: u64,
) -> Result<Link, SimulationError> {
    let limits = match spec.queue {
        QueueSpec::Infinite => Limits::NONE,
        QueueSpec::DropTail { packets, bytes } => Limits::new(packets, bytes),
    };
    let mut link = match &spec.rate {
        RateSpec::Unlimited => Link::wire(spec.delay),
        RateSpec::Fixed(rate) => Link::fifo(*rate, limits, spec.delay),
        RateSpec::Trace { name, offset, once } => {
            let trace = traces(name).map_err(SimulationError::Trace)?;
            let server = Server::trace(trace, *offset, *once);
            Link::queued(Box::new(DropTail::new(limits)), server, spec.delay)
        }
    };
    let stream = Stream::new(seed, &format!("link.{}.loss", spec.name));
    let probability = spec.loss;
    link.set_loss((probability > 0.0).then_some(RandomLoss {
        probability,
        stream,
    }));
    Ok(link)
}
