//! Counters and latencies.

use headway_cc::{Duration, Time};
use headway_fixed::Reason;
use headway_kernel::abi::CounterValues;
use headway_record::LogHistogram;

use crate::system::logs;

/// The agent's counters. The program counts the rest.
#[derive(Debug, Default)]
pub struct Statistics {
    /// Records received.
    pub reports: u64,
    /// Records of unknown flows.
    pub unknown: u64,
    /// Malformed messages.
    pub malformed: u64,
    /// Decisions of policies.
    pub decisions: u64,
    /// Decisions that a flow carried out while its path was outside the training range of its
    /// model.
    pub outside: u64,
    /// Decisions that a flow carried out and that changed the window or rate by the most that its
    /// model can.
    pub at_bound: u64,
    /// Times that a flow's learner diverged.
    pub divergences: u64,
    /// When the agent started. The latency of earlier requests does not count.
    pub begun: Time,
    /// The time from a flow's newest record, or from its clock's due time, to the answer in the
    /// slot. It excludes late timers.
    pub latency: Latency,
}

/// The guard's reason in one word; empty if the guard has not tripped.
pub fn reason(reason: u32) -> &'static str {
    Reason::of(reason).map_or("unknown", Reason::name)
}

impl Statistics {
    /// All counters: these, the program's, and the number of flows.
    pub fn counters(&self, program: &CounterValues, flows: usize) -> serde_json::Value {
        let trips = Reason::ALL.iter().zip(program.trips);
        let by_reason: serde_json::Map<String, serde_json::Value> = (trips.skip(1))
            .map(|(reason, count)| (reason.name().to_owned(), count.into()))
            .collect();
        serde_json::json!({
            "flows_opened": program.flows,
            "flows": flows,
            "slots_full": program.slots_full,
            "user_full": program.user_full,
            "ring_dropped": program.ring_dropped,
            "held_back": program.held_back,
            "wakes": program.wakes,
            "guard_trips": program.trips.iter().sum::<u64>(),
            "guard_trips_by_reason": by_reason,
            "guard_returns": program.returns,
            "reports": self.reports,
            "reports_of_unknown_flows": self.unknown,
            "malformed_messages": self.malformed,
            "actions": self.decisions,
            "decisions_outside_range": self.outside,
            "decisions_at_bound": self.at_bound,
            "divergences": self.divergences,
            "log_lines_dropped": logs::dropped(),
        })
    }

    pub fn latency(&self) -> serde_json::Value {
        self.latency.describe()
    }
}

/// The latency of answers.
#[derive(Debug, Default)]
pub struct Latency {
    all: LogHistogram,
    /// For each of [`Latency::BOUNDS_US`], the number of answers that took at most that time, and
    /// longer than the bound before.
    within: [u64; Latency::BOUNDS_US.len()],
    sum: Duration,
}

impl Latency {
    /// The bounds of the histogram. The guard waits at least 100 ms.
    const BOUNDS_US: [u64; 10] = [
        10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000,
    ];

    pub fn add(&mut self, time: Duration) {
        self.all.add(time);
        self.sum += time;
        let fits = |bound: &u64| time <= Duration::from_micros(*bound);
        if let Some(at) = Latency::BOUNDS_US.iter().position(fits) {
            self.within[at] += 1;
        }
    }

    /// Percentiles since the start, in us. `at_most` has `[us, answers]` for each bound: the number
    /// of all answers that took at most that time.
    fn describe(&self) -> serde_json::Value {
        let us = |p: f64| self.all.percentile_ms(p).map(|ms| ms * 1e3);
        let mut sum = 0;
        let within = Latency::BOUNDS_US.iter().zip(self.within);
        let within: Vec<_> = within
            .map(|(bound, count)| {
                sum += count;
                [*bound, sum]
            })
            .collect();
        serde_json::json!({
            "p50": us(0.5),
            "p99": us(0.99),
            "count": self.all.count(),
            "sum": self.sum.as_nanos() as f64 / 1e3,
            "at_most": within,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_for_each_bound_that_it_keeps() {
        let mut latency = Latency::default();
        for us in [1, 10, 11, 2000, 100_000, 400_000] {
            latency.add(Duration::from_micros(us));
        }
        let said = latency.describe();
        let expected = serde_json::json!([
            [10, 2],
            [30, 3],
            [100, 3],
            [300, 3],
            [1000, 3],
            [3000, 4],
            [10_000, 4],
            [30_000, 4],
            [100_000, 5],
            [300_000, 5]
        ]);
        assert_eq!(said["at_most"], expected);
        assert_eq!(
            (said["count"].as_u64(), said["sum"].as_f64()),
            (Some(6), Some(502_022.0))
        );
    }
}
