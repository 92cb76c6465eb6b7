//! A checked scenario with its ranges still open, and how a seed fixes them.
//!
//! The serialised plan is the canonical form that the hash is taken over, so that renaming or
//! reordering fields here changes every scenario's hash.

use std::collections::BTreeSet;

use headway_cc::{Bytes, Duration, Rate, Time};
use serde::Serialize;

use crate::quantity::Quantity;
use crate::{
    Change, CrossSpec, FlowSpec, LinkSpec, Network, Pattern, QueueSpec, RateSpec, Source, Transport,
};

/// What a scenario means. Times in ns, rates in bit/s, sizes in bytes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Plan {
    pub schema: u64,
    pub duration: f64,
    pub packet_size: f64,
    pub ack_size: f64,
    #[serde(serialize_with = "transport_name")]
    pub transport: Transport,
    pub nodes: Vec<String>,
    pub links: Vec<LinkPlan>,
    pub flows: Vec<FlowPlan>,
    pub cross: Vec<CrossPlan>,
    pub changes: Vec<ChangePlan>,
    /// Added to each flow's start, drawn for each.
    pub start_jitter: Option<Quantity>,
    /// All traces begin this far in.
    pub trace_offset: Option<Quantity>,
    pub host_jitter: Option<Quantity>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct LinkPlan {
    pub name: String,
    pub from: usize,
    pub to: usize,
    pub rate: RatePlan,
    pub delay: Quantity,
    pub loss: Quantity,
    pub queue: QueuePlan,
    /// The other direction, of a link written with `duplex`.
    pub twin: Option<usize>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RatePlan {
    Unlimited,
    Fixed(Quantity),
    Trace { name: String, once: bool },
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum QueuePlan {
    Infinite,
    DropTail {
        packets: Option<Quantity>,
        bytes: Option<QueueBytes>,
    },
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum QueueBytes {
    Bytes(Quantity),
    Bdp(Quantity),
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct FlowPlan {
    pub count: u64,
    pub scheme: Option<String>,
    pub from: usize,
    pub to: usize,
    pub start: Quantity,
    pub stop: Option<Quantity>,
    pub stagger: Quantity,
    pub source: SourcePlan,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SourcePlan {
    Bulk,
    Finite(Quantity),
    Rate(Quantity),
    OnOff { on: Quantity, off: Quantity },
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct CrossPlan {
    pub from: usize,
    pub to: usize,
    pub start: Quantity,
    pub stop: Option<Quantity>,
    pub rate: Quantity,
    pub packet_size: Quantity,
    pub pattern: PatternPlan,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PatternPlan {
    Constant,
    Poisson,
    OnOff { on: Quantity, off: Quantity },
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct ChangePlan {
    pub at: Quantity,
    pub link: usize,
    pub rate: Option<Quantity>,
    pub delay: Option<Quantity>,
    pub loss: Option<Quantity>,
}

fn transport_name<S: serde::Serializer>(transport: &Transport, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(match transport {
        Transport::Simple => "simple",
        Transport::Linux => "linux",
    })
}

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

    /// What makes two seeds differ, in words where it is random by nature, else the quantity's name.
    pub fn varies(&self) -> Vec<String> {
        let varies = |q: &Option<Quantity>| q.as_ref().is_some_and(Quantity::varies);
        let losses = self
            .links
            .iter()
            .map(|l| &l.loss)
            .chain(self.changes.iter().filter_map(|c| c.loss.as_ref()));
        let by_nature = [
            ("start time", varies(&self.start_jitter)),
            ("trace offset", varies(&self.trace_offset)),
            (
                "loss",
                losses.into_iter().any(|q| q.high > 0.0 && q.low < 1.0),
            ),
            (
                "host jitter",
                self.host_jitter.as_ref().is_some_and(|q| q.high > 0.0),
            ),
            (
                "on and off times",
                self.flows
                    .iter()
                    .any(|f| matches!(f.source, SourcePlan::OnOff { .. })),
            ),
            (
                "background traffic",
                self.cross
                    .iter()
                    .any(|c| !matches!(c.pattern, PatternPlan::Constant)),
            ),
        ];
        let names = by_nature
            .into_iter()
            .filter(|(_, yes)| *yes)
            .map(|(name, _)| name.to_owned());
        names.chain(self.ranges()).collect()
    }

    /// The names of the ranges among links, flows, cross traffic and changes.
    fn ranges(&self) -> BTreeSet<String> {
        let mut all: Vec<&Quantity> = Vec::new();
        for link in &self.links {
            all.extend([&link.delay, &link.loss]);
            if let RatePlan::Fixed(rate) = &link.rate {
                all.push(rate);
            }
            if let QueuePlan::DropTail { packets, bytes } = &link.queue {
                all.extend(packets);
                all.extend(
                    bytes
                        .as_ref()
                        .map(|(QueueBytes::Bytes(q) | QueueBytes::Bdp(q))| q),
                );
            }
        }
        for flow in &self.flows {
            all.extend([&flow.start, &flow.stagger]);
            all.extend(&flow.stop);
            match &flow.source {
                SourcePlan::Bulk => {}
                SourcePlan::Finite(q) | SourcePlan::Rate(q) => all.push(q),
                SourcePlan::OnOff { on, off } => all.extend([on, off]),
            }
        }
        for cross in &self.cross {
            all.extend([&cross.start, &cross.rate, &cross.packet_size]);
            all.extend(&cross.stop);
            if let PatternPlan::OnOff { on, off } = &cross.pattern {
                all.extend([on, off]);
            }
        }
        for change in &self.changes {
            all.push(&change.at);
            all.extend(
                [&change.rate, &change.delay, &change.loss]
                    .into_iter()
                    .flatten(),
            );
        }
        all.into_iter()
            .filter(|q| q.varies())
            .map(|q| q.component.clone())
            .collect()
    }
}

/// For each link the longest base RTT (propagation there and back) of the flows whose data or
/// acknowledgements cross it; zero where none does.
fn longest_rtts(network: &Network) -> Vec<Duration> {
    let routes = network.routes();
    let mut rtts = vec![Duration::ZERO; network.links.len()];
    let pairs: BTreeSet<(usize, usize)> = network.flows.iter().map(|f| (f.from, f.to)).collect();
    for (from, to) in pairs {
        let there = routes.between(from, to).unwrap_or_default();
        let back = routes.between(to, from).unwrap_or_default();
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

impl QueuePlan {
    /// The limit in bandwidth-delay products, if it is written so.
    pub fn bdp(&self) -> Option<&Quantity> {
        match self {
            QueuePlan::DropTail {
                bytes: Some(QueueBytes::Bdp(q)),
                ..
            } => Some(q),
            _ => None,
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
