//! What a decision brought, in plain units: rewards are computed from it.

use headway_cc::Time;
use headway_policy::{FEATURES, Interval};

/// A column of the measurements of a step.
#[derive(Clone, Copy, Debug)]
pub struct Measurement {
    /// Its name; the unit is in it.
    pub name: &'static str,
    /// What it is, in one line.
    pub help: &'static str,
}

const fn column(name: &'static str, help: &'static str) -> Measurement {
    Measurement { name, help }
}

/// What a simulation says of a step beside the features.
const OWN: [Measurement; 9] = [
    column("dt_s", "how long the step took, in simulated time"),
    column("time_s", "simulated time since the flow began"),
    column(
        "throughput_packets_per_s",
        "packets acknowledged in the step, over its length",
    ),
    column(
        "capacity_mbps",
        "what the tightest link on the way could have carried in the step; infinite if none has a rate",
    ),
    column(
        "queue_packets",
        "packets that wait in the queues on the way as the step ends",
    ),
    column(
        "base_rtt_ms",
        "propagation there and back, as the episode began",
    ),
    column(
        "path_rtt_ms",
        "what a packet and its acknowledgement take alone as the step ends: propagation, and transmission at fixed rates",
    ),
    column(
        "path_mbps",
        "mean rate of the slowest link on the way, as the episode began; infinite if none has a rate",
    ),
    column(
        "fair_mbps",
        "a link's mean rate over the flows there whose data crosses it as the step ends, the least on the way; `path_mbps` for a flow alone",
    ),
];

/// What is measured of every step, in this order: the simulation's own, then every feature, not
/// normalised.
pub fn measurements() -> impl Iterator<Item = Measurement> {
    let features = FEATURES.iter().map(|f| column(f.name, f.help));
    OWN.into_iter().chain(features)
}

/// How many numbers are measured of a step.
pub fn width() -> usize {
    OWN.len() + FEATURES.len()
}

/// The state of a flow's way as a step ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WayState {
    pub capacity_mbps: f64,
    pub queue_packets: usize,
    pub base_rtt_ms: f64,
    pub path_rtt_ms: f64,
    pub path_mbps: f64,
    pub fair_mbps: f64,
}

/// Writes the row of a step.
pub(crate) fn write(row: &mut [f64], begun: Time, interval: &Interval, way: WayState) {
    let (own, features) = row.split_at_mut(OWN.len());
    own.copy_from_slice(&[
        interval.length.as_secs_f64(),
        interval.end.since(begun).as_secs_f64(),
        interval.per_second(interval.delivered),
        way.capacity_mbps,
        way.queue_packets as f64,
        way.base_rtt_ms,
        way.path_rtt_ms,
        way.path_mbps,
        way.fair_mbps,
    ]);
    for (value, feature) in features.iter_mut().zip(FEATURES) {
        *value = (feature.value)(interval);
    }
}
