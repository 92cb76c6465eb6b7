//! Time series on a regular grid.

use std::ops::Range;

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

/// The state of a flow's sender at the end of each bin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GridSample {
    /// The window in packets; `None` without a limit.
    pub cwnd_packets: Option<f64>,
    /// Data in flight, in full packets.
    pub in_flight_packets: f64,
    /// The pacing rate, Mbit/s; `None` if acknowledgements alone clock the sender.
    pub pacing_mbps: Option<f64>,
    /// The smoothed RTT; `None` before the first sample.
    pub rtt_ms: Option<f64>,
    /// The controller's estimate of the bottleneck's bandwidth, Mbit/s; `None` if it has no model
    /// of its path.
    pub btlbw_mbps: Option<f64>,
    /// The controller's estimate of the round trip's propagation time.
    pub rtprop_ms: Option<f64>,
}

/// The samples of one flow or of several: sums, except round trips, which are means.
#[derive(Clone, Copy, Debug)]
struct AtEnd {
    cwnd_packets: Option<f64>,
    in_flight_packets: f64,
    pacing_mbps: Option<f64>,
    rtt: Mean,
    btlbw_mbps: Option<f64>,
    rtprop: Mean,
}

/// The mean over the flows that have a value.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    count: u32,
}

impl Mean {
    fn of(value: Option<f64>) -> Mean {
        Mean {
            sum: value.unwrap_or(0.0),
            count: u32::from(value.is_some()),
        }
    }

    fn merge(self, other: Mean) -> Mean {
        Mean {
            sum: self.sum + other.sum,
            count: self.count + other.count,
        }
    }

    fn get(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}

impl From<GridSample> for AtEnd {
    fn from(sample: GridSample) -> AtEnd {
        AtEnd {
            cwnd_packets: sample.cwnd_packets,
            in_flight_packets: sample.in_flight_packets,
            pacing_mbps: sample.pacing_mbps,
            rtt: Mean::of(sample.rtt_ms),
            btlbw_mbps: sample.btlbw_mbps,
            rtprop: Mean::of(sample.rtprop_ms),
        }
    }
}

impl AtEnd {
    /// Several flows together have a window, a pacing rate or an estimate of their bandwidth only
    /// if each has one.
    fn merge(self, other: AtEnd) -> AtEnd {
        let sum = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
        AtEnd {
            cwnd_packets: sum(self.cwnd_packets, other.cwnd_packets),
            in_flight_packets: self.in_flight_packets + other.in_flight_packets,
            pacing_mbps: sum(self.pacing_mbps, other.pacing_mbps),
            rtt: self.rtt.merge(other.rtt),
            btlbw_mbps: sum(self.btlbw_mbps, other.btlbw_mbps),
            rtprop: self.rtprop.merge(other.rtprop),
        }
    }
}

/// A finished series, with one entry a bin; `None` if nothing arrived in the bin, or the flow was
/// not running at its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// When each bin begins, s.
    pub time_s: Vec<f64>,
    /// Rate of sent data, Mbit/s, including data that is lost later.
    pub sent_mbps: Vec<f64>,
    /// Rate of data that the sender took for lost, Mbit/s; it was sent a round trip or more before.
    pub lost_mbps: Vec<f64>,
    /// Rate of arriving data, Mbit/s.
    pub throughput_mbps: Vec<f64>,
    /// Mean one-way delay of arriving data.
    pub delay_mean_ms: Vec<Option<f64>>,
    /// Mean time of arriving data in queues and transmission.
    pub queue_mean_ms: Vec<Option<f64>>,
    /// Bytes that the sender took for lost in the bin, as a share of those that it sent; may exceed
    /// 1.
    pub loss: Vec<Option<f64>>,
    /// The window as the bin ended; the sum over several flows.
    pub cwnd_packets: Vec<Option<f64>>,
    /// Data in flight as the bin ended, in full packets; the sum over several flows.
    pub in_flight_packets: Vec<Option<f64>>,
    /// The pacing rate as the bin ended, Mbit/s; the sum over several flows.
    pub pacing_mbps: Vec<Option<f64>>,
    /// The smoothed RTT as the bin ended; the mean over several flows.
    pub rtt_ms: Vec<Option<f64>>,
    /// The controller's estimate of its path's bandwidth as the bin ended, Mbit/s; the sum over
    /// several flows.
    pub btlbw_mbps: Vec<Option<f64>>,
    /// The controller's estimate of the round trip's propagation time as the bin ended; the mean
    /// over several flows.
    pub rtprop_ms: Vec<Option<f64>>,
}

impl Series {
    /// The series of these bins alone.
    pub(crate) fn part(&self, bins: Range<usize>) -> Series {
        let real = |values: &[f64]| values[bins.clone()].to_vec();
        let maybe = |values: &[Option<f64>]| values[bins.clone()].to_vec();
        Series {
            time_s: real(&self.time_s),
            sent_mbps: real(&self.sent_mbps),
            lost_mbps: real(&self.lost_mbps),
            throughput_mbps: real(&self.throughput_mbps),
            delay_mean_ms: maybe(&self.delay_mean_ms),
            queue_mean_ms: maybe(&self.queue_mean_ms),
            loss: maybe(&self.loss),
            cwnd_packets: maybe(&self.cwnd_packets),
            in_flight_packets: maybe(&self.in_flight_packets),
            pacing_mbps: maybe(&self.pacing_mbps),
            rtt_ms: maybe(&self.rtt_ms),
            btlbw_mbps: maybe(&self.btlbw_mbps),
            rtprop_ms: maybe(&self.rtprop_ms),
        }
    }
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
            let mbps = |bytes: u64| bytes as f64 * 8e-6 / interval_s;
            series.time_s.push(i as f64 * interval_s);
            series.sent_mbps.push(mbps(b.sent));
            series.lost_mbps.push(mbps(b.lost));
            series.throughput_mbps.push(mbps(b.bytes));
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
            series.rtt_ms.push(at_end.and_then(|e| e.rtt.get()));
            series.btlbw_mbps.push(at_end.and_then(|e| e.btlbw_mbps));
            series.rtprop_ms.push(at_end.and_then(|e| e.rtprop.get()));
        }
        series
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In bins of half a second, 3000 bytes sent are 0.048 Mbit/s.
    #[test]
    fn a_bin_counts_sent_and_lost_bytes() {
        let (at, packet) = (Time::from_millis, Bytes::new(1500));
        let mut first = Grid::new(Duration::from_millis(500));
        first.on_sent(at(100), packet);
        first.on_sent(at(499), packet);
        first.on_lost(at(600), packet);
        let mut second = Grid::new(Duration::from_millis(500));
        second.on_sent(at(1200), packet);
        second.on_lost(at(1400), packet);
        second.on_lost(at(1400), packet);
        second.merge(&first);
        let close = |series: Vec<f64>, expected: [f64; 4]| {
            assert_eq!(series.len(), 4);
            let differs = |(a, b): (f64, f64)| (a - b).abs() > 1e-12;
            assert!(!series.into_iter().zip(expected).any(differs));
        };
        let (alone, both) = (first.finish(at(2000)), second.finish(at(2000)));
        close(alone.sent_mbps, [0.048, 0.0, 0.0, 0.0]);
        close(alone.lost_mbps, [0.0, 0.024, 0.0, 0.0]);
        close(both.sent_mbps, [0.048, 0.0, 0.024, 0.0]);
        close(both.lost_mbps, [0.0, 0.024, 0.048, 0.0]);
        assert_eq!(both.loss, [Some(0.0), None, Some(2.0), None]);
    }
}
