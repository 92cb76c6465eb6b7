//! The metrics of a flow, or of several together, after a run.

use headway_cc::Time;
use serde::{Deserialize, Serialize};

use crate::FlowMeter;

/// The metrics; `None` for one that does not apply (no packet arrived, one flow has no fairness).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Bits that arrived, divided by the time from the first arrival to the flow's end, Mbit/s.
    pub throughput_mbps: Option<f64>,
    /// Mean one-way delay, including propagation.
    pub delay_mean_ms: Option<f64>,
    /// 95th percentile of the one-way delay.
    pub delay_p95_ms: Option<f64>,
    /// Mean of the part of the delay spent in queues and transmission.
    pub queue_mean_ms: Option<f64>,
    /// 95th percentile of that part.
    pub queue_p95_ms: Option<f64>,
    /// Share of the bytes sent that did not arrive. Bytes still queued at the end count as lost;
    /// bytes on a wire do not count at all (Pantheon counts both).
    pub loss: Option<f64>,
    /// Share of the bottleneck's capacity that was used while the flow was measured, by its packets
    /// that both left and arrived meanwhile; in the pooled row, by all traffic.
    pub utilisation: Option<f64>,
    /// Mean of the sender's RTT samples.
    pub rtt_mean_ms: Option<f64>,
    /// 95th percentile of the sender's RTT samples.
    pub rtt_p95_ms: Option<f64>,
    /// Throughput divided by the mean one-way delay, Mbit/s per s (Owl Eq. 12).
    pub power: Option<f64>,
    /// Throughput divided by the 95th percentile of the one-way delay, Mbit/s per s.
    pub power_p95: Option<f64>,
    /// Owl's utility (Eq. 7), see [`owl_utility`].
    pub utility: Option<f64>,
    /// Jain's index of the flows' delivered data: the mean over the time in which several flows
    /// run, among those; in the pooled row only.
    pub jain: Option<f64>,
    /// Seconds until the flow reached its fair share and held it, see
    /// [`Convergence`](crate::Convergence); in the pooled row, those of the slowest flow if all
    /// converged.
    pub convergence_s: Option<f64>,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets that arrived.
    pub delivered_packets: u64,
    /// Decisions of a learned controller that were ignored because a number was not finite.
    pub refused_decisions: u64,
    /// How often the fallback took flows from a learned controller: because the guard tripped, or
    /// because the learner diverged. In world `kernel` only the pooled row has it, because a daemon
    /// counts all its flows together.
    pub guard_trips: u64,
}

/// The busiest link on a flow's way, over the measured time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bottleneck {
    /// Bytes that the link could have carried.
    pub offered_bytes: f64,
    /// Bytes that it carried, for all traffic or for one flow.
    pub used_bytes: f64,
}

impl Metrics {
    /// Every metric with its name, in the order of the columns.
    pub fn named(mut self) -> [(&'static str, Option<f64>); 14] {
        self.named_mut().map(|(name, value)| (name, *value))
    }

    /// Same as [`named`](Self::named), to set the metrics.
    pub(crate) fn named_mut(&mut self) -> [(&'static str, &mut Option<f64>); 14] {
        [
            ("throughput_mbps", &mut self.throughput_mbps),
            ("delay_mean_ms", &mut self.delay_mean_ms),
            ("delay_p95_ms", &mut self.delay_p95_ms),
            ("queue_mean_ms", &mut self.queue_mean_ms),
            ("queue_p95_ms", &mut self.queue_p95_ms),
            ("loss", &mut self.loss),
            ("utilisation", &mut self.utilisation),
            ("rtt_mean_ms", &mut self.rtt_mean_ms),
            ("rtt_p95_ms", &mut self.rtt_p95_ms),
            ("power", &mut self.power),
            ("power_p95", &mut self.power_p95),
            ("utility", &mut self.utility),
            ("jain", &mut self.jain),
            ("convergence_s", &mut self.convergence_s),
        ]
    }

    /// The metrics of `meter`, whose flow sent until `end`.
    pub fn of(meter: &FlowMeter, end: Time, bottleneck: Option<Bottleneck>) -> Metrics {
        let span_s = meter.first_arrival.map_or(0.0, |first| {
            end.max(meter.last_arrival).since(first).as_secs_f64()
        });
        let throughput_mbps = match meter.first_arrival {
            Some(_) if span_s > 0.0 => Some(meter.arrived_bytes as f64 * 8e-6 / span_s),
            _ if meter.sent_bytes > 0 => Some(0.0),
            _ => None,
        };
        let at_risk = meter.sent_bytes.saturating_sub(meter.propagating_bytes);
        let loss =
            (at_risk > 0).then(|| (1.0 - meter.delivered_bytes as f64 / at_risk as f64).max(0.0));
        let delay_mean_ms = meter.delay.mean_ms();
        let delay_p95_ms = meter.delay.percentile_ms(0.95);
        let per_second = |delay_ms: Option<f64>| Some(throughput_mbps? / (delay_ms? / 1e3));
        let utilisation = bottleneck
            .filter(|b| b.offered_bytes > 0.0)
            .map(|b| b.used_bytes / b.offered_bytes);
        let rtt_mean_ms = meter.rtt.mean_ms();
        let utility = match (throughput_mbps, loss, meter.rtt_inflation()) {
            (Some(x), Some(p), Some(inflation)) => owl_utility(x, p, inflation),
            _ => None,
        };
        Metrics {
            throughput_mbps,
            delay_mean_ms,
            delay_p95_ms,
            queue_mean_ms: meter.queue.mean_ms(),
            queue_p95_ms: meter.queue.percentile_ms(0.95),
            loss,
            utilisation,
            rtt_mean_ms,
            rtt_p95_ms: meter.rtt.percentile_ms(0.95),
            power: per_second(delay_mean_ms),
            power_p95: per_second(delay_p95_ms),
            utility,
            jain: None,
            convergence_s: None,
            sent_packets: meter.sent_packets,
            delivered_packets: meter.delivered_packets,
            refused_decisions: meter.refused_decisions,
            guard_trips: meter.guard_trips,
        }
    }
}

/// Owl's utility (Eq. 7) with delta = beta = 0.5, throughput in Mbit/s, natural logarithm:
/// `x - delta x / (1 - p) - beta ln(rtt / rtt_min)`. `rtt_inflation` is the mean RTT divided by its
/// minimum over 10 s, as in the paper. `None` if everything is lost.
pub fn owl_utility(throughput_mbps: f64, loss: f64, rtt_inflation: f64) -> Option<f64> {
    const DELTA: f64 = 0.5;
    const BETA: f64 = 0.5;
    if loss >= 1.0 || rtt_inflation <= 0.0 {
        return None;
    }
    let x = throughput_mbps;
    Some(x - DELTA * x / (1.0 - loss) - BETA * libm::log(rtt_inflation))
}

/// Jain's fairness index: 1 for equal shares, 1/n if one flow has everything; `None` without
/// traffic.
pub fn jain_index(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_cc::{Bytes, Duration};

    #[test]
    fn by_hand() {
        let ms = Time::from_millis;
        let mut m = FlowMeter::new(Time::ZERO);
        for i in 0..11 {
            m.on_sent(ms(i * 100), Bytes::new(1500));
        }
        // Ten packets arrive, 30 to 39 ms after they left, one every 100 ms; one is on the wire at
        // the end.
        for i in 0..10 {
            m.on_delivered(
                ms(i * 100 + 30 + i),
                ms(i * 100),
                Duration::from_millis(10 + i),
                Bytes::new(1500),
            );
            m.on_rtt(ms(i * 100 + 60), Duration::from_millis(50 + i));
        }
        m.on_propagating_at_end(ms(1000), Bytes::new(1500));
        let b = Bottleneck {
            offered_bytes: 30_000.0,
            used_bytes: 16_500.0,
        };
        let x = Metrics::of(&m, ms(1030), Some(b));
        assert_eq!(x.throughput_mbps, Some(0.12)); // 15 kB in the second after 30 ms
        assert_eq!(x.loss, Some(0.0));
        assert_eq!(x.delay_mean_ms, Some(34.5));
        assert_eq!(x.queue_mean_ms, Some(14.5));
        assert!((x.delay_p95_ms.unwrap() - 39.0).abs() < 0.04);
        assert_eq!(x.utilisation, Some(0.55));
        assert!((x.power.unwrap() - 0.12 / 0.0345).abs() < 1e-12);
        assert!((x.utility.unwrap() - (0.06 - 0.5 * libm::log(54.5 / 50.0))).abs() < 1e-12);
        assert_eq!((x.sent_packets, x.delivered_packets), (11, 10));
    }

    #[test]
    fn jain_index_matches_hand_computation() {
        assert_eq!(jain_index(&[1.0, 1.0, 1.0, 1.0]), Some(1.0));
        assert_eq!(jain_index(&[4.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain_index(&[0.0, 0.0]), None);
    }

    #[test]
    fn a_flow_without_packets_has_no_metrics() {
        let x = Metrics::of(&FlowMeter::new(Time::ZERO), Time::from_millis(10), None);
        assert_eq!(x, Metrics::default());
    }
}
