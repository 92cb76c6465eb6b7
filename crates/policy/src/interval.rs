//! What a policy's host measured between two decisions.

use headway_cc::{Duration, NetworkView, Time};

use crate::{Averages, Record};

/// What a host measured between two decisions. Counts are of packets in this interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// When it ended.
    pub end: Time,
    /// The flow's age then.
    pub age: Duration,
    /// How long it was.
    pub length: Duration,
    /// Acknowledgements that arrived.
    pub acks: u32,
    /// Packets sent, retransmissions among them.
    pub sent: u32,
    /// Packets sent again.
    pub retransmitted: u32,
    /// Packets acknowledged.
    pub delivered: u32,
    /// Packets acknowledged with a CE mark.
    pub delivered_ce: u32,
    /// Packets taken for lost.
    pub lost: u32,
    /// The RTT samples.
    pub rtt: RttSummary,
    /// The minimum RTT sample of the 10 s that end with the newest one, in microseconds; zero
    /// before the first.
    pub min_rtt_10s_us: u32,
    /// How much older the last sample with that minimum is than the newest sample, to 10 ms.
    pub min_rtt_10s_age: Duration,
    /// The flow's state at the last record.
    pub latest: Record,
    /// The largest delivery rate of the flow so far, in packets a second.
    pub max_delivery_rate: f64,
    /// The delivery rate of the newest sample, in packets a second.
    pub delivery_rate: f64,
    /// The largest throughput of the flow so far, in packets a second; zero before the first. Each
    /// value covers one interval, or as many as last
    /// [`Monitor::THROUGHPUT_SPAN`](crate::Monitor::THROUGHPUT_SPAN).
    pub max_throughput: f64,
    /// Throughput over about a round trip (a time constant of 0.7 minimum RTTs of the last 10 s),
    /// in packets a second.
    pub recent_throughput: f64,
    /// The largest recent throughput in the last 100 ms. An interval counts for 10 ms at most.
    pub peak_throughput: f64,
    /// Averages over the flow; zero unless the observation contains one of them.
    pub averages: Averages,
    /// The newest report of the network's switches, with its current age.
    pub network: NetworkView,
    /// The age of the last action when it took effect.
    pub action_age: Duration,
}

/// The RTT samples of an interval, in microseconds. An interval without samples has the last one's
/// values, and no slope.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RttSummary {
    /// The number of samples in this interval.
    pub samples: u32,
    /// Their mean.
    pub mean_us: f64,
    /// The smallest sample.
    pub min_us: u32,
    /// The largest sample.
    pub max_us: u32,
    /// The newest sample.
    pub latest_us: u32,
    /// The newest sample minus the one before it, which may be of an earlier interval.
    pub change_us: f64,
    /// The mean divided by the mean of the last interval with samples; 1 in the first.
    pub growth: f64,
    /// The least-squares slope over time, in seconds a second.
    pub slope: f64,
}

impl Interval {
    /// A count as packets a second; zero in an interval of no length.
    pub fn per_second(&self, packets: u32) -> f64 {
        match self.length.is_zero() {
            true => 0.0,
            false => f64::from(packets) / self.length.as_secs_f64(),
        }
    }

    /// Converts packets a second to Mbit/s on the wire.
    pub fn mbps(&self, packets_per_second: f64) -> f64 {
        packets_per_second * f64::from(self.latest.mss) * 8e-6
    }

    /// The share of lost packets among those whose fate became known.
    pub fn loss(&self) -> f64 {
        match self.lost + self.delivered {
            0 => 0.0,
            known => f64::from(self.lost) / f64::from(known),
        }
    }
}
