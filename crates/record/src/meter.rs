//! The counters of a flow while it runs.

use headway_cc::{Bytes, Duration, MinRtt, Time};

use crate::LogHistogram;

/// Counts one flow from `since` on; its memory does not grow with the packets.
///
/// A packet counts if it left at `since` or later, so that loss compares the same packets at both
/// ends.
#[derive(Clone, Debug, Default)]
pub struct FlowMeter {
    pub(crate) since: Time,
    pub(crate) sent_bytes: u64,
    pub(crate) sent_packets: u64,
    pub(crate) delivered_bytes: u64,
    pub(crate) delivered_packets: u64,
    /// Bytes delivered, regardless of when the packets left, and when the first and the last of
    /// them arrived.
    pub(crate) arrived_bytes: u64,
    pub(crate) first_arrival: Option<Time>,
    pub(crate) last_arrival: Time,
    pub(crate) delay: LogHistogram,
    pub(crate) queue: LogHistogram,
    pub(crate) rtt: LogHistogram,
    min_rtt: MinRtt,
    /// The sum of RTT samples, each divided by the minimum of the last 10 s. Samples over the
    /// newest minimum are still to be divided.
    inflations: f64,
    over_least: Duration,
    /// Bytes that arrived since [`take_recent`](Self::take_recent).
    recent_bytes: u64,
    /// Bytes that were on a wire, not in a queue, when the run ended.
    pub(crate) propagating_bytes: u64,
    pub(crate) refused_decisions: u64,
    pub(crate) guard_trips: u64,
}

impl FlowMeter {
    /// A meter that counts from `since` on.
    pub fn new(since: Time) -> FlowMeter {
        FlowMeter {
            since,
            ..FlowMeter::default()
        }
    }

    /// A data packet left.
    #[inline]
    pub fn on_sent(&mut self, now: Time, size: Bytes) {
        if now >= self.since {
            self.sent_bytes += size.get();
            self.sent_packets += 1;
        }
    }

    /// A data packet arrived; it spent `queued` of its delay in queues and transmission.
    #[inline]
    pub fn on_delivered(&mut self, now: Time, sent: Time, queued: Duration, size: Bytes) {
        self.recent_bytes += size.get();
        if now < self.since {
            return;
        }
        self.arrived_bytes += size.get();
        self.first_arrival.get_or_insert(now);
        self.last_arrival = now;
        if sent >= self.since {
            self.delivered_bytes += size.get();
            self.delivered_packets += 1;
            self.delay.add(now.since(sent));
            self.queue.add(queued);
        }
    }

    /// Bytes that both left and arrived since `since`.
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// Bytes that arrived since `since`, whenever they left.
    pub fn arrived_bytes(&self) -> u64 {
        self.arrived_bytes
    }

    /// When the last packet arrived.
    pub fn last_arrival(&self) -> Time {
        self.last_arrival
    }

    /// Bytes that arrived since the last call, including the warm-up.
    pub fn take_recent(&mut self) -> u64 {
        std::mem::take(&mut self.recent_bytes)
    }

    /// The sender took an RTT sample.
    #[inline]
    pub fn on_rtt(&mut self, now: Time, rtt: Duration) {
        let before = self.min_rtt.get();
        self.min_rtt.add(now, rtt);
        if self.min_rtt.get() != before {
            self.inflations += inflation(self.over_least, before);
            self.over_least = Duration::ZERO;
        }
        if now >= self.since {
            self.rtt.add(rtt);
            self.over_least += rtt;
        }
    }

    /// The sum of RTT samples, each divided by the minimum of the 10 s before it.
    fn inflations(&self) -> f64 {
        self.inflations + inflation(self.over_least, self.min_rtt.get())
    }

    /// The mean of the RTT samples, each divided by the minimum of the 10 s before it; `None`
    /// without a sample.
    pub(crate) fn rtt_inflation(&self) -> Option<f64> {
        let samples = self.rtt.count();
        (samples > 0).then(|| self.inflations() / samples as f64)
    }

    /// A data packet is on a wire, not in a queue, as the run ends: it counts as neither delivered
    /// nor lost.
    pub fn on_propagating_at_end(&mut self, sent: Time, size: Bytes) {
        if sent >= self.since {
            self.propagating_bytes += size.get();
        }
    }

    /// Notes at the end of the run how many of the controller's decisions were ignored because a
    /// number was not finite.
    pub fn on_refused_decisions(&mut self, count: u64) {
        self.refused_decisions = count;
    }

    /// Notes at the end of the run how often a guard took the flow from its policy.
    pub fn on_guard_trips(&mut self, count: u64) {
        self.guard_trips = count;
    }

    /// Adds another flow, for the pooled row of a run.
    pub fn merge(&mut self, other: &FlowMeter) {
        self.since = self.since.min(other.since);
        self.sent_bytes += other.sent_bytes;
        self.sent_packets += other.sent_packets;
        self.delivered_bytes += other.delivered_bytes;
        self.delivered_packets += other.delivered_packets;
        self.arrived_bytes += other.arrived_bytes;
        self.first_arrival = match (self.first_arrival, other.first_arrival) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.last_arrival = self.last_arrival.max(other.last_arrival);
        self.delay.merge(&other.delay);
        self.queue.merge(&other.queue);
        self.rtt.merge(&other.rtt);
        self.inflations = self.inflations() + other.inflations();
        self.over_least = Duration::ZERO;
        self.propagating_bytes += other.propagating_bytes;
        self.refused_decisions += other.refused_decisions;
        self.guard_trips += other.guard_trips;
    }
}

/// The sum of samples, divided by their minimum.
fn inflation(sum: Duration, least: Duration) -> f64 {
    if sum.is_zero() {
        return 0.0;
    }
    sum.as_nanos() as f64 / least.as_nanos().max(1) as f64
}
