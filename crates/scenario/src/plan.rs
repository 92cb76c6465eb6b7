//! A checked scenario whose ranges are not drawn yet.
//!
//! The serialised plan is the canonical form from which the hash is computed, so renaming or
//! reordering fields here changes every scenario's hash. Later additions are left out if they are
//! not set, so that older scenarios keep their hashes.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::impairment::{JitterPlan, LossPlan, ReorderPlan};
use crate::quantity::Quantity;
use crate::queue::QueuePlan;
use crate::switches::{Known, SwitchesPlan};
use crate::{Part, Transport};

/// The most recurring changes and visits of flows together, which memory easily holds.
pub(crate) const MAX_EVENTS: f64 = 100_000.0;

/// The meaning of a scenario. Times are in ns, rates in bit/s, sizes in bytes.
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
    /// A time added to each flow's start, drawn for each flow.
    pub start_jitter: Option<Quantity>,
    /// The offset at which all traces begin.
    pub trace_offset: Option<Quantity>,
    pub host_jitter: Option<Quantity>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub every: Vec<EveryPlan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switches: Option<SwitchesPlan>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct LinkPlan {
    pub name: String,
    pub from: usize,
    pub to: usize,
    pub rate: RatePlan,
    pub delay: Quantity,
    pub loss: LossPlan,
    pub queue: QueuePlan,
    /// The link of the other direction, for a link written with `duplex`.
    pub twin: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<JitterPlan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<ReorderPlan>,
    #[serde(skip_serializing_if = "is_default")]
    pub router_of_scheme: bool,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RatePlan {
    Unlimited,
    Fixed(Quantity),
    Trace(TracePlan),
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct TracePlan {
    pub name: String,
    pub once: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub part: Part,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Quantity>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_window: Option<Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence: Option<PresencePlan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<Vec<usize>>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<Vec<usize>>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PatternPlan {
    Constant,
    Poisson,
    OnOff { on: Quantity, off: Quantity },
}

/// A change of a link that happens once.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ChangePlan {
    pub at: Quantity,
    #[serde(flatten)]
    pub effect: EffectPlan,
}

/// A change of a link that recurs, with values drawn each time.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct EveryPlan {
    pub gap: Quantity,
    /// The time at which the first gap begins.
    pub start: Quantity,
    pub stop: Option<Quantity>,
    #[serde(flatten)]
    pub effect: EffectPlan,
}

/// The effect of a change on a link, and on its twin if it has one.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct EffectPlan {
    pub link: usize,
    pub rate: Option<Quantity>,
    pub delay: Option<Quantity>,
    pub loss: Option<Quantity>,
}

/// The lengths of time for which a flow is present and absent, drawn each time.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PresencePlan {
    pub present: Quantity,
    pub absent: Quantity,
}

/// Left out of the canonical form, so that a new key does not change older hashes.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn transport_name<S: serde::Serializer>(transport: &Transport, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(match transport {
        Transport::Simple => "simple",
        Transport::Linux => "linux",
    })
}

impl Plan {
    /// What makes two seeds differ: a description if it is random by nature, else the quantity's
    /// name.
    pub fn varies(&self) -> Vec<String> {
        let varies = |q: &Option<Quantity>| q.as_ref().is_some_and(Quantity::varies);
        let changed = |q: &Quantity| q.high > 0.0 && q.low < 1.0;
        let loss = self.links.iter().any(|l| l.loss.draws())
            || self.effects().filter_map(|e| e.loss.as_ref()).any(changed);
        let by_nature = [
            ("start time", varies(&self.start_jitter)),
            ("trace offset", varies(&self.trace_offset)),
            ("loss", loss),
            ("jitter", self.links.iter().any(|l| l.jitter.is_some())),
            ("reordering", self.links.iter().any(|l| l.reorder.is_some())),
            ("queue", self.links.iter().any(|l| l.queue.draws())),
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
            (
                "known switches",
                self.switches.as_ref().is_some_and(SwitchesPlan::varies),
            ),
        ];
        let names = by_nature
            .into_iter()
            .filter(|(_, yes)| *yes)
            .map(|(name, _)| name.to_owned());
        names.chain(self.ranges()).collect()
    }

    fn effects(&self) -> impl Iterator<Item = &EffectPlan> {
        let at = self.changes.iter().map(|c| &c.effect);
        at.chain(self.every.iter().map(|e| &e.effect))
    }

    /// The longest run, in ns, that surely has no more than [`MAX_EVENTS`] random events.
    pub fn longest(&self) -> f64 {
        let changes = self.every.iter().map(|e| 1.0 / e.gap.low);
        let flows = self.flows.iter().filter_map(|f| {
            let presence = f.presence.as_ref()?;
            Some(f.count as f64 / (presence.present.low + presence.absent.low))
        });
        // This is not sum(), which would be -0 without terms.
        MAX_EVENTS / changes.chain(flows).fold(0.0, |all, one| all + one)
    }

    /// The names of the ranges among links, flows, cross traffic and changes.
    fn ranges(&self) -> BTreeSet<String> {
        let mut all: Vec<&Quantity> = Vec::new();
        for link in &self.links {
            all.push(&link.delay);
            all.extend(link.loss.quantities());
            all.extend(link.jitter.iter().map(|j| j.quantity()));
            all.extend(link.reorder.iter().flat_map(|r| [&r.probability, &r.delay]));
            if let RatePlan::Fixed(rate) = &link.rate {
                all.push(rate);
            }
            all.extend(link.queue.quantities());
        }
        for flow in &self.flows {
            all.extend([&flow.start, &flow.stagger]);
            all.extend(&flow.stop);
            all.extend(flow.presence.iter().flat_map(|p| [&p.present, &p.absent]));
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
        all.extend(self.changes.iter().map(|c| &c.at));
        for every in &self.every {
            all.extend([&every.gap, &every.start]);
            all.extend(&every.stop);
        }
        if let Some(switches) = &self.switches {
            all.extend([&switches.period, &switches.latency]);
            all.extend(&switches.until);
            if let Known::Share(share) = &switches.known {
                all.push(share);
            }
        }
        for effect in self.effects() {
            all.extend(
                [&effect.rate, &effect.delay, &effect.loss]
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
