//! Draws the ranges of a plan by a seed.

use std::collections::BTreeSet;

use headway_cc::{Bytes, Duration, Rate, Time};

use crate::plan::{
    CrossPlan, EffectPlan, FlowPlan, LinkPlan, PatternPlan, Plan, PresencePlan, RatePlan,
    SourcePlan, TracePlan,
};
use crate::quantity::{Quantity, Series};
use crate::{Change, CrossSpec, FlowSpec, LinkSpec, Network, Pattern, RateSpec, Source, TraceSpec};

fn time(q: &Quantity, seed: u64) -> Time {
    Time::from_nanos(q.draw_whole(seed))
}

fn rate(q: &Quantity, seed: u64) -> Rate {
    Rate::from_bps(q.draw_whole(seed))
}

fn bytes(q: &Quantity, seed: u64) -> Bytes {
    Bytes::new(q.draw_whole(seed))
}

impl Plan {
    /// Draws every range for a run of this length. The same seed gives the same network, and a
    /// longer run begins like a shorter one.
    pub fn draw(&self, seed: u64, length: Duration) -> Network {
        let end = Time::ZERO + length;
        let offset = self.trace_offset(seed).unwrap_or(Duration::ZERO);
        let packet_size = Bytes::from_f64(self.packet_size);
        let mut network = Network {
            nodes: self.nodes.clone(),
            links: self
                .links
                .iter()
                .map(|l| l.draw(seed, offset, packet_size))
                .collect(),
            flows: self
                .flows
                .iter()
                .enumerate()
                .scan(0, |place, (i, f)| {
                    let first = *place;
                    *place += f.count as usize;
                    Some(f.draw(seed, (i, first), self.start_jitter.as_ref(), end))
                })
                .flatten()
                .collect(),
            cross: self.cross.iter().map(|c| c.draw(seed)).collect(),
            changes: self.draw_changes(seed, end),
            packet_size,
            ack_size: Bytes::from_f64(self.ack_size),
            transport: self.transport,
            host_jitter: self
                .host_jitter
                .as_ref()
                .map_or(Duration::ZERO, |q| q.duration(seed)),
            switches: None,
        };
        network.switches = self.switches.as_ref().map(|s| s.draw(seed, &network));
        self.size_queues(&mut network, seed);
        network
    }

    /// Changes by time; at the same time, in the order of the file.
    fn draw_changes(&self, seed: u64, end: Time) -> Vec<Change> {
        let mut changes = Vec::new();
        for plan in &self.changes {
            let mut effect = Effect::new(&plan.effect, &self.links, seed);
            effect.happens(time(&plan.at, seed), &mut changes);
        }
        for plan in &self.every {
            let mut effect = Effect::new(&plan.effect, &self.links, seed);
            let stop = plan.stop.as_ref().map_or(end, |q| time(q, seed).min(end));
            let mut gaps = plan.gap.series(seed);
            let mut gap = || Duration::from_nanos(gaps.draw_whole());
            let mut at = time(&plan.start, seed) + gap();
            while at < stop {
                effect.happens(at, &mut changes);
                at += gap();
            }
        }
        changes.sort_by_key(|c| c.at);
        changes
    }

    /// The offset at which traces begin, if it varies.
    pub fn trace_offset(&self, seed: u64) -> Option<Duration> {
        self.trace_offset.as_ref().map(|q| q.duration(seed))
    }

    /// Computes the queues that are written in BDP.
    fn size_queues(&self, network: &mut Network, seed: u64) {
        if !self.links.iter().any(|l| l.queue.bdp().is_some()) {
            return;
        }
        let rtts = longest_rtts(network);
        for ((plan, link), rtt) in self.links.iter().zip(&mut network.links).zip(rtts) {
            if let (Some(bdp), RateSpec::Fixed(rate)) = (plan.queue.bdp(), &link.rate) {
                let size = rate.as_bytes_per_sec() * rtt.as_secs_f64() * bdp.draw(seed);
                link.queue.bytes = Some(Bytes::from_f64(size).max(network.packet_size));
            }
        }
    }
}

/// For each link, the longest base RTT (propagation there and back) of the flows whose data or
/// acknowledgements cross it; zero if there is no such flow.
fn longest_rtts(network: &Network) -> Vec<Duration> {
    let routes = network.routes();
    let mut rtts = vec![Duration::ZERO; network.links.len()];
    let mut seen = BTreeSet::new();
    for flow in &network.flows {
        let (from, to, nodes) = (flow.from, flow.to, flow.route.as_deref());
        if !seen.insert((from, to, nodes)) {
            continue;
        }
        let round = routes.round_trip(from, to, nodes);
        let rtt = round.iter().map(|&l| network.links[l].delay).sum();
        for link in round {
            rtts[link] = rtts[link].max(rtt);
        }
    }
    rtts
}

impl LinkPlan {
    fn draw(&self, seed: u64, offset: Duration, packet_size: Bytes) -> LinkSpec {
        let rate = match &self.rate {
            RatePlan::Unlimited => RateSpec::Unlimited,
            RatePlan::Fixed(q) => RateSpec::Fixed(rate(q, seed)),
            RatePlan::Trace(trace) => RateSpec::Trace {
                trace: trace.spec(),
                offset,
                once: trace.once,
            },
        };
        LinkSpec {
            queue: self.queue.draw(seed, &rate, packet_size),
            router_of_scheme: self.router_of_scheme,
            name: self.name.clone(),
            from: self.from,
            to: self.to,
            rate,
            delay: self.delay.duration(seed),
            loss: self.loss.draw(seed),
            jitter: self.jitter.as_ref().map(|j| j.draw(seed)),
            reorder: self.reorder.as_ref().map(|r| r.draw(seed)),
        }
    }
}

impl TracePlan {
    /// The trace to look up.
    pub fn spec(&self) -> TraceSpec {
        TraceSpec {
            name: self.name.clone(),
            part: self.part,
            mean: self.mean.as_ref().map(|q| Rate::from_bps(q.low as u64)),
        }
    }
}

impl FlowPlan {
    /// The flows of the entry `index`, the first of which has this `place`.
    fn draw(
        &self,
        seed: u64,
        (index, place): (usize, usize),
        jitter: Option<&Quantity>,
        end: Time,
    ) -> Vec<FlowSpec> {
        let stagger = self.stagger.duration(seed);
        let mut flows = Vec::new();
        for k in 0..self.count {
            let jitter = jitter.map_or(Duration::ZERO, |q| {
                let component = format!("flow.{index}.jitter");
                Quantity { component, ..*q }.of(k).duration(seed)
            });
            let flow = FlowSpec {
                place: place + k as usize,
                scheme: self.scheme.clone(),
                from: self.from,
                to: self.to,
                route: self.route.clone(),
                start: time(&self.start.of(k), seed) + stagger * k + jitter,
                stop: self.stop.as_ref().map(|q| time(&q.of(k), seed)),
                source: self.source.draw(seed, |q| q.of(k)),
                receive_window: self.receive_window.as_ref().map(|q| bytes(&q.of(k), seed)),
            };
            match &self.presence {
                None => flows.push(flow),
                Some(presence) => {
                    let visit = |n: u64| self.source.draw(seed, |q| q.of(k).of(n));
                    presence.of(k).draw(seed, &flow, visit, end, &mut flows);
                }
            }
        }
        flows
    }
}

impl PresencePlan {
    /// The presence of the `k`th of several like flows.
    fn of(&self, k: u64) -> PresencePlan {
        PresencePlan {
            present: self.present.of(k),
            absent: self.absent.of(k),
        }
    }

    /// One flow for each time that `flow` is present until the run's end; `source` gives the data
    /// of the `n`th.
    fn draw(
        &self,
        seed: u64,
        flow: &FlowSpec,
        source: impl Fn(u64) -> Source,
        end: Time,
        flows: &mut Vec<FlowSpec>,
    ) {
        let (mut present, mut absent) = (self.present.series(seed), self.absent.series(seed));
        let last = flow.stop.unwrap_or(Time::NEVER);
        let mut start = flow.start;
        for n in 0.. {
            let leaves = start + Duration::from_nanos(present.draw_whole());
            flows.push(FlowSpec {
                start,
                stop: Some(leaves.min(last)),
                source: source(n),
                ..flow.clone()
            });
            start = leaves + Duration::from_nanos(absent.draw_whole());
            if start >= last.min(end) {
                return;
            }
        }
    }
}

impl SourcePlan {
    /// The data that one flow has to send; `of` gives its own copy of each quantity.
    fn draw(&self, seed: u64, of: impl Fn(&Quantity) -> Quantity) -> Source {
        match self {
            SourcePlan::Bulk => Source::Bulk,
            SourcePlan::Finite(q) => Source::Finite(bytes(&of(q), seed)),
            SourcePlan::Rate(q) => Source::Rate(rate(&of(q), seed)),
            SourcePlan::OnOff { on, off } => Source::OnOff {
                on: of(on).duration(seed),
                off: of(off).duration(seed),
            },
        }
    }
}

impl CrossPlan {
    fn draw(&self, seed: u64) -> CrossSpec {
        CrossSpec {
            from: self.from,
            to: self.to,
            route: self.route.clone(),
            start: time(&self.start, seed),
            stop: self.stop.as_ref().map(|q| time(q, seed)),
            rate: rate(&self.rate, seed),
            packet_size: bytes(&self.packet_size, seed),
            pattern: match &self.pattern {
                PatternPlan::Constant => Pattern::Constant,
                PatternPlan::Poisson => Pattern::Poisson,
                PatternPlan::OnOff { on, off } => Pattern::OnOff {
                    on: on.duration(seed),
                    off: off.duration(seed),
                },
            },
        }
    }
}

/// A change of a link and its twin, ready to be drawn.
struct Effect {
    link: usize,
    twin: Option<usize>,
    rate: Option<Series>,
    delay: Option<Series>,
    loss: Option<Series>,
}

impl Effect {
    fn new(plan: &EffectPlan, links: &[LinkPlan], seed: u64) -> Effect {
        let series = |q: &Option<Quantity>| q.as_ref().map(|q| q.series(seed));
        Effect {
            link: plan.link,
            twin: links[plan.link].twin,
            rate: series(&plan.rate),
            delay: series(&plan.delay),
            loss: series(&plan.loss),
        }
    }

    /// Adds one change, or one for each direction.
    fn happens(&mut self, at: Time, changes: &mut Vec<Change>) {
        let change = Change {
            at,
            link: self.link,
            rate: self.rate.as_mut().map(|s| Rate::from_bps(s.draw_whole())),
            delay: self
                .delay
                .as_mut()
                .map(|s| Duration::from_nanos(s.draw_whole())),
            loss: self.loss.as_mut().map(Series::draw),
        };
        let twin = self.twin.map(|link| Change {
            link,
            ..change.clone()
        });
        changes.push(change);
        changes.extend(twin);
    }
}
