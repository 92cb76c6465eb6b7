//! What is counted.

use headway_cc::Time;
use headway_fixed::Reason;
use headway_record::LogHistogram;

use super::Kernel;

/// What the agent counts; the programs count the rest.
#[derive(Debug, Default)]
pub struct Statistics {
    /// Flows' states that came.
    pub reports: u64,
    /// Of flows that are not known.
    pub unknown: u64,
    /// Malformed messages.
    pub malformed: u64,
    /// Answers that a policy gave.
    pub decisions: u64,
    /// Those that a flow carried out while its path was outside the training range of its model.
    pub outside: u64,
    /// Those that a flow carried out and that changed window or rate by the most that their model
    /// can.
    pub at_bound: u64,
    /// Times that a flow's learner diverged.
    pub divergences: u64,
    /// When the agent began. Questions from before were another's to answer, and their latency does not count.
    pub begun: Time,
    /// From what was seen, until the newest record that was read or the time that a clock decided as of, to the answer in the
    /// slot: how late a clock woke is not in it.
    pub latency: LogHistogram,
}

/// Why the guard took a flow, in one word; nothing where it did not.
pub fn reason(reason: u32) -> &'static str {
    Reason::of(reason).map_or("unknown", Reason::name)
}

impl Statistics {
    pub fn counters(&self, programs: &[impl Kernel], flows: usize) -> serde_json::Value {
        let mut sums = [0; 6];
        let mut trips = [0; Reason::ALL.len()];
        for program in programs {
            let counted = program.counters();
            let own = [
                counted.flows,
                counted.slots_full,
                counted.ring_dropped,
                counted.returns,
                counted.wakes,
                counted.user_full,
            ];
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
            (trips.iter_mut().zip(counted.trips)).for_each(|(sum, own)| *sum += own);
        }
        let by_reason: serde_json::Map<String, serde_json::Value> = (Reason::ALL.iter().zip(trips))
            .skip(1)
            .map(|(reason, count)| (reason.name().to_owned(), count.into()))
            .collect();
        serde_json::json!({
            "flows_opened": sums[0],
            "flows": flows,
            "slots_full": sums[1],
            "user_full": sums[5],
            "ring_dropped": sums[2],
            "wakes": sums[4],
            "guard_trips": trips.iter().sum::<u64>(),
            "guard_trips_by_reason": by_reason,
            "guard_returns": sums[3],
            "reports": self.reports,
            "reports_of_unknown_flows": self.unknown,
            "malformed_messages": self.malformed,
            "actions": self.decisions,
            "decisions_outside_range": self.outside,
            "decisions_at_bound": self.at_bound,
            "divergences": self.divergences,
        })
    }

    pub fn latency(&self) -> serde_json::Value {
        let us = |p: f64| self.latency.percentile_ms(p).map(|ms| ms * 1e3);
        serde_json::json!({ "p50": us(0.5), "p99": us(0.99), "count": self.latency.count() })
    }
}
