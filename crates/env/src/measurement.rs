//! The result of a decision, in plain units: rewards are computed from it.

use headway_cc::Time;
use headway_policy::{FEATURES, Interval};

/// A measurement of a step, which is a column.
#[derive(Clone, Copy, Debug)]
pub struct Measurement {
    /// The column's name, which includes its unit.
    pub name: &'static str,
    /// The column's meaning, in one line.
    pub help: &'static str,
}

const fn column(name: &'static str, help: &'static str) -> Measurement {
    Measurement { name, help }
}

/// The simulation's own measurements of a step, besides the features.
const OWN: [Measurement; 9] = [
    column("dt_s", "length of the step, in simulated time"),
    column("time_s", "simulated time since the flow began"),
    column(
        "throughput_packets_per_s",
        "packets acknowledged in the step, divided by its length",
    ),
    column(
        "capacity_mbps",
        "capacity of the tightest link on the way during the step; infinite if none has a rate",
    ),
    column(
        "queue_packets",
        "packets waiting in the queues on the way at the step's end",
    ),
    column(
        "base_rtt_ms",
        "propagation time there and back, at the episode's beginning",
    ),
    column(
        "path_rtt_ms",
        "time of a packet and its acknowledgement without queues, at the step's end: propagation, and transmission at fixed rates",
    ),
    column(
        "path_mbps",
        "mean rate of the slowest link on the way, at the episode's beginning; infinite if none has a rate",
    ),
    column(
        "fair_mbps",
        "smallest fair share on the way at the step's end: a link's mean rate divided by the number of running flows whose data crosses it; `path_mbps` for a flow alone",
    ),
];

/// All measurements of a step, in this order: the simulation's own, then every feature, not
/// normalised.
pub fn measurements() -> impl Iterator<Item = Measurement> {
    let features = FEATURES.iter().map(|f| column(f.name, f.help));
    OWN.into_iter().chain(features)
}

/// The number of measurements of a step.
pub fn width() -> usize {
    OWN.len() + FEATURES.len()
}

/// The state of a flow's path at the end of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WayState {
    pub capacity_mbps: f64,
    pub queue_packets: usize,
    pub base_rtt_ms: f64,
    pub path_rtt_ms: f64,
    pub path_mbps: f64,
    pub fair_mbps: f64,
}

/// Writes the measurements of a step.
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
