//! How a seed fixes the ranges of a plan.

use std::collections::BTreeSet;

use headway_cc::{Bytes, Duration, Rate, Time};

use crate::plan::{
    ChangePlan, CrossPlan, FlowPlan, LinkPlan, PatternPlan, Plan, QueueBytes, QueuePlan, RatePlan,
    SourcePlan,
};
use crate::quantity::Quantity;
use crate::{Change, CrossSpec, FlowSpec, LinkSpec, Network, Pattern, QueueSpec, RateSpec, Source};

fn duration(q: &Quantity, seed: u64) -> Duration {
    Duration::from_nanos(q.draw_whole(seed))
}

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
    /// Fixes every range: the same seed gives the same network.
    pub fn draw(&self, seed: u64) -> Network {
        let offset = self.trace_offset(seed).unwrap_or(Duration::ZERO);
        let mut network = Network {
            nodes: self.nodes.clone(),
            links: self.links.iter().map(|l| l.draw(seed, offset)).collect(),
            flows: self
                .flows
                .iter()
                .enumerate()
                .flat_map(|(i, f)| f.draw(seed, i, self.start_jitter.as_ref()))
                .collect(),
            cross: self.cross.iter().map(|c| c.draw(seed)).collect(),
            changes: self
                .changes
                .iter()
                .flat_map(|c| c.draw(seed, &self.links))
                .collect(),
            packet_size: Bytes::from_f64(self.packet_size),
            ack_size: Bytes::from_f64(self.ack_size),
            transport: self.transport,
            host_jitter: self
                .host_jitter
                .as_ref()
                .map_or(Duration::ZERO, |q| duration(q, seed)),
        };
        network.changes.sort_by_key(|c| c.at);
        self.size_queues(&mut network, seed);
        network
    }

    /// How far in the traces begin, if that varies.
    pub fn trace_offset(&self, seed: u64) -> Option<Duration> {
        self.trace_offset.as_ref().map(|q| duration(q, seed))
    }

    /// Fills in the queues that are written in bandwidth-delay products.
    fn size_queues(&self, network: &mut Network, seed: u64) {
        if !self.links.iter().any(|l| l.queue.bdp().is_some()) {
            return;
        }
        let rtts = longest_rtts(network);
        for ((plan, link), rtt) in self.links.iter().zip(&mut network.links).zip(rtts) {
            if let (Some(bdp), RateSpec::Fixed(rate), QueueSpec::DropTail { bytes, .. }) =
                (plan.queue.bdp(), &link.rate, &mut link.queue)
            {
                let size = rate.as_bytes_per_sec() * rtt.as_secs_f64() * bdp.draw(seed);
                *bytes = Some(Bytes::from_f64(size).max(network.packet_size));
            }
        }
    }
}

/// For each link the longest base RTT (propagation there and back) of the flows whose data or
/// acknowledgements cross it; zero where none does.
fn longest_rtts(network: &Network) -> Vec<Duration> {
    let routes = network.routes();
    let mut rtts = vec![Duration::ZERO; network.links.len()];
    let mut seen = BTreeSet::new();
    for flow in &network.flows {
        let (from, to, nodes) = (flow.from, flow.to, flow.route.as_deref());
        if !seen.insert((from, to, nodes)) {
            continue;
        }
        let there = routes.there(from, to, nodes).unwrap_or_default();
        let back = routes.back(from, to, nodes).unwrap_or_default();
        let round: Vec<usize> = there.into_iter().chain(back).collect();
        let rtt = round.iter().map(|&l| network.links[l].delay).sum();
        for link in round {
            rtts[link] = rtts[link].max(rtt);
        }
    }
    rtts
}

impl LinkPlan {
    fn draw(&self, seed: u64, offset: Duration) -> LinkSpec {
        LinkSpec {
            name: self.name.clone(),
            from: self.from,
            to: self.to,
            rate: match &self.rate {
                RatePlan::Unlimited => RateSpec::Unlimited,
                RatePlan::Fixed(q) => RateSpec::Fixed(rate(q, seed)),
                RatePlan::Trace { name, once } => RateSpec::Trace {
                    name: name.clone(),
                    offset,
                    once: *once,
                },
            },
            delay: duration(&self.delay, seed),
            loss: self.loss.draw(seed),
            queue: match &self.queue {
                QueuePlan::Infinite => QueueSpec::Infinite,
                QueuePlan::DropTail {
                    packets,
                    bytes: limit,
                } => QueueSpec::DropTail {
                    packets: packets.as_ref().map(|q| q.draw_whole(seed)),
                    bytes: match limit {
                        Some(QueueBytes::Bytes(q)) => Some(bytes(q, seed)),
                        Some(QueueBytes::Bdp(_)) | None => None,
                    },
                },
            },
        }
    }
}

impl FlowPlan {
    /// The flows of the `index`th entry.
    fn draw(
        &self,
        seed: u64,
        index: usize,
        jitter: Option<&Quantity>,
    ) -> impl Iterator<Item = FlowSpec> {
        let stagger = duration(&self.stagger, seed);
        (0..self.count).map(move |k| {
            let jitter = jitter.map_or(Duration::ZERO, |q| {
                let component = format!("flow.{index}.jitter");
                duration(&Quantity { component, ..*q }.of(k), seed)
            });
            FlowSpec {
                scheme: self.scheme.clone(),
                from: self.from,
                to: self.to,
                route: self.route.clone(),
                start: time(&self.start.of(k), seed) + stagger * k + jitter,
                stop: self.stop.as_ref().map(|q| time(&q.of(k), seed)),
                source: match &self.source {
                    SourcePlan::Bulk => Source::Bulk,
                    SourcePlan::Finite(q) => Source::Finite(bytes(&q.of(k), seed)),
                    SourcePlan::Rate(q) => Source::Rate(rate(&q.of(k), seed)),
                    SourcePlan::OnOff { on, off } => Source::OnOff {
                        on: duration(&on.of(k), seed),
                        off: duration(&off.of(k), seed),
                    },
                },
            }
        })
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
                    on: duration(on, seed),
                    off: duration(off, seed),
                },
            },
        }
    }
}

impl ChangePlan {
    /// One change, or one for each direction.
    fn draw(&self, seed: u64, links: &[LinkPlan]) -> impl Iterator<Item = Change> {
        let change = Change {
            at: time(&self.at, seed),
            link: self.link,
            rate: self.rate.as_ref().map(|q| rate(q, seed)),
            delay: self.delay.as_ref().map(|q| duration(q, seed)),
            loss: self.loss.as_ref().map(|q| q.draw(seed)),
        };
        let twin = links[self.link].twin.map(|link| Change {
            link,
            ..change.clone()
        });
        std::iter::once(change).chain(twin)
    }
}
