//! The status of an agent.

use headway_cc::Time;

use super::{Agent, Kernel, Shadow};

/// The number of flows that are described between two reads of the ring. That takes about a
/// millisecond, and an answer may take a hundred.
pub const TOLD_AT_ONCE: usize = 64;

impl<K: Kernel> Agent<K> {
    /// The status without the flows. This takes the same time however many flows there are.
    pub fn counters(&self, now: Time) -> serde_json::Value {
        let name = self.program.name();
        let mut controller = match &self.policies {
            Some(policies) => policies.describe(name),
            None => serde_json::json!({ "name": name }),
        };
        controller["program"] = self.program.version().into();
        let (counted, flows) = (self.program.counters(), self.flows.count());
        let mut counters = self.statistics.counters(&counted, flows);
        counters["learners"] = self.flows.learning().all().into();
        counters["shadow_dropped"] = self.shadow.as_ref().map_or(0, Shadow::dropped).into();
        counters["delayed"] = self.shares.delayed().into();
        counters["learners_refused"] = self.learners.refused().into();
        serde_json::json!({
            "schema": 1,
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_s": now.since(self.begun).as_secs_f64(),
            "shadow": self.shadow.is_some(),
            "controllers": [controller],
            "counters": counters,
            "latency_us": self.statistics.latency(),
        })
    }

    /// The counters and what the network reports, for `headwayd status`.
    pub fn summary(&self, now: Time) -> serde_json::Value {
        let mut summary = self.counters(now);
        summary["network"] = self.paths.describe().into();
        summary
    }

    /// Describes some of the flows, from this slot on. Returns also the slot of the next part.
    pub fn page(&self, from: u16, now: Time) -> (Vec<serde_json::Value>, Option<u16>) {
        let (slots, next) = self.slots(from, TOLD_AT_ONCE);
        let flows = slots.into_iter().filter_map(|slot| {
            let mut said = self.flows.get(slot)?.describe(self.program.name(), now);
            said["program"] = self.program.version().into();
            Some(said)
        });
        (flows.collect(), next)
    }
}
