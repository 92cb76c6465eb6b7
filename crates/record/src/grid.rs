//! Time series on a regular grid.

use headway_cc::{Bytes, Duration, Time};
use serde::{Deserialize, Serialize};

/// Collects one flow's series.
#[derive(Clone, Debug)]
pub struct Grid {
    interval: Duration,
    bins: Vec<Bin>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    sent: u64,
    bytes: u64,
    packets: u64,
    delay_ns: u64,
    queued_ns: u64,
    lost: u64,
    at_end: Option<AtEnd>,
}

/// What is read off a flow's sender at the end of each bin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GridSample {
    /// The window in packets; `None` without a limit.
    pub cwnd_packets: Option<f64>,
    /// In flight, in full packets.
    pub in_flight_packets: f64,
    /// The pacing rate, Mbit/s; `None` where acknowledgements alone clock the sender.
    pub pacing_mbps: Option<f64>,
    /// The smoothed RTT; `None` before the first sample.
    pub rtt_ms: Option<f64>,
}

/// The samples of one flow or of several: sums, but for the RTT, which is a mean.
#[derive(Clone, Copy, Debug)]
struct AtEnd {
    cwnd_packets: Option<f64>,
    in_flight_packets: f64,
    pacing_mbps: Option<f64>,
    rtt_sum_ms: f64,
    rtts: u32,
}

impl From<GridSample> for AtEnd {
    fn from(sample: GridSample) -> AtEnd {
        AtEnd {
            cwnd_packets: sample.cwnd_packets,
            in_flight_packets: sample.in_flight_packets,
            pacing_mbps: sample.pacing_mbps,
            rtt_sum_ms: sample.rtt_ms.unwrap_or(0.0),
            rtts: u32::from(sample.rtt_ms.is_some()),
        }
    }
}

impl AtEnd {
    /// Several flows together have a window or a pacing rate only if each has.
    fn merge(self, other: AtEnd) -> AtEnd {
        let sum = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
        AtEnd {
            cwnd_packets: sum(self.cwnd_packets, other.cwnd_packets),
            in_flight_packets: self.in_flight_packets + other.in_flight_packets,
            pacing_mbps: sum(self.pacing_mbps, other.pacing_mbps),
            rtt_sum_ms: self.rtt_sum_ms + other.rtt_sum_ms,
            rtts: self.rtts + other.rtts,
        }
    }

    fn rtt_ms(&self) -> Option<f64> {
        (self.rtts > 0).then(|| self.rtt_sum_ms / f64::from(self.rtts))
    }
}

/// A finished series: one entry a bin; `None` where nothing arrived in it, or where the flow was not there
/// as it ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// When each bin begins, s.
    pub time_s: Vec<f64>,
    /// Arrived, Mbit/s.
    pub throughput_mbps: Vec<f64>,
    /// Mean one-way delay of what arrived.
    pub delay_mean_ms: Vec<Option<f64>>,
    /// Mean of its part in queues and transmission.
    pub queue_mean_ms: Vec<Option<f64>>,
    /// Share of the bytes sent in the bin that the sender took for lost in it; may exceed 1.
    pub loss: Vec<Option<f64>>,
    /// The window as the bin ended; of several flows the sum.
    pub cwnd_packets: Vec<Option<f64>>,
    /// What was in flight as the bin ended, in full packets; of several flows the sum.
    pub in_flight_packets: Vec<Option<f64>>,
    /// The pacing rate as the bin ended, Mbit/s; of several flows the sum.
    pub pacing_mbps: Vec<Option<f64>>,
    /// The smoothed RTT as the bin ended; of several flows the mean.
    pub rtt_ms: Vec<Option<f64>>,
}

impl Grid {
    /// Bins of `interval` (at least a nanosecond), the first at time zero.
    pub fn new(interval: Duration) -> Grid {
        Grid {
            interval: interval.max(Duration::from_nanos(1)),
            bins: Vec::new(),
        }
    }

    #[inline]
    fn bin(&mut self, now: Time) -> &mut Bin {
        let index = (now.as_nanos() / self.interval.as_nanos()) as usize;
        if self.bins.len() <= index {
            self.bins.resize(index + 1, Bin::default());
        }
        &mut self.bins[index]
    }

    /// A data packet left.
    pub fn on_sent(&mut self, now: Time, size: Bytes) {
        self.bin(now).sent += size.get();
    }

    /// A data packet arrived.
    pub fn on_delivered(&mut self, now: Time, sent: Time, queued: Duration, size: Bytes) {
        let bin = self.bin(now);
        bin.bytes += size.get();
        bin.packets += 1;
        bin.delay_ns += now.since(sent).as_nanos();
        bin.queued_ns += queued.as_nanos();
    }

    /// The sender took `size` for lost.
    pub fn on_lost(&mut self, now: Time, size: Bytes) {
        self.bin(now).lost += size.get();
    }

    /// A bin ends at `end`.
    pub fn on_bin_end(&mut self, end: Time, sample: GridSample) {
        self.bin(end.saturating_sub(Duration::from_nanos(1))).at_end = Some(sample.into());
    }

    /// Adds another flow's counts and samples.
    pub fn merge(&mut self, other: &Grid) {
        if self.bins.len() < other.bins.len() {
            self.bins.resize(other.bins.len(), Bin::default());
        }
        for (a, b) in self.bins.iter_mut().zip(&other.bins) {
            a.sent += b.sent;
            a.bytes += b.bytes;
            a.packets += b.packets;
            a.delay_ns += b.delay_ns;
            a.queued_ns += b.queued_ns;
            a.lost += b.lost;
            a.at_end = match (a.at_end, b.at_end) {
                (Some(x), Some(y)) => Some(x.merge(y)),
                (x, y) => x.or(y),
            };
        }
    }

    /// The series up to `end`, every bin filled.
    pub fn finish(mut self, end: Time) -> Series {
        let bins = end.as_nanos().div_ceil(self.interval.as_nanos()) as usize;
        self.bins.resize(bins, Bin::default());
        let interval_s = self.interval.as_secs_f64();
        let mut series = Series::default();
        for (i, b) in self.bins.iter().enumerate() {
            let mean = |ns: u64| (b.packets > 0).then(|| ns as f64 / b.packets as f64 / 1e6);
            series.time_s.push(i as f64 * interval_s);
            series
                .throughput_mbps
                .push(b.bytes as f64 * 8e-6 / interval_s);
            series.delay_mean_ms.push(mean(b.delay_ns));
            series.queue_mean_ms.push(mean(b.queued_ns));
            series
                .loss
                .push((b.sent > 0).then(|| b.lost as f64 / b.sent as f64));
            let at_end = b.at_end.as_ref();
            series
                .cwnd_packets
                .push(at_end.and_then(|e| e.cwnd_packets));
            series
                .in_flight_packets
                .push(at_end.map(|e| e.in_flight_packets));
            series.pacing_mbps.push(at_end.and_then(|e| e.pacing_mbps));
            series.rtt_ms.push(at_end.and_then(AtEnd::rtt_ms));
        }
        series
    }
}
