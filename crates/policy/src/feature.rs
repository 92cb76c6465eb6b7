//! The features that a learned controller may observe.

use crate::{Interval, Record};

/// Something that a learned controller may observe: a number of an [`Interval`].
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// As specs and tables call it; its unit is in the name.
    pub name: &'static str,
    /// What it is, in one line.
    pub help: &'static str,
    /// Where the kernel has it from.
    pub kernel: &'static str,
    /// Its value.
    pub value: fn(&Interval) -> f64,
}

/// Every feature. Each is computed from [`Record`]s alone, which every world supplies (`docs/features.md`).
pub static FEATURES: &[Feature] = &[
    Feature {
        name: "interval_ms",
        help: "time since the last decision",
        kernel: "bpf_ktime_get_ns()",
        value: |i| i.length.as_millis_f64(),
    },
    Feature {
        name: "action_age_ms",
        help: "how long the last action took from its observation to its effect",
        kernel: "the agent's clock",
        value: |i| i.action_age.as_millis_f64(),
    },
    Feature {
        name: "cwnd_packets",
        help: "congestion window",
        kernel: "tp->snd_cwnd",
        value: |i| f64::from(i.latest.cwnd),
    },
    Feature {
        name: "in_flight_packets",
        help: "packets neither acknowledged nor taken for lost",
        kernel: "tcp_packets_in_flight()",
        value: |i| f64::from(i.latest.in_flight),
    },
    Feature {
        name: "mss_bytes",
        help: "size of a full packet on the wire",
        kernel: "tp->mss_cache and the headers",
        value: |i| f64::from(i.latest.mss),
    },
    Feature {
        name: "pacing_rate_mbps",
        help: "pacing rate; zero without pacing",
        kernel: "sk->sk_pacing_rate",
        value: |i| i.latest.pacing_rate as f64 * 8e-6,
    },
    Feature {
        name: "rtt_ms",
        help: "mean RTT of the interval",
        kernel: "ack_sample->rtt_us",
        value: |i| i.rtt.mean_us * 1e-3,
    },
    Feature {
        name: "rtt_change_ms",
        help: "newest RTT sample less the one before it",
        kernel: "ack_sample->rtt_us",
        value: |i| i.rtt.change_us * 1e-3,
    },
    Feature {
        name: "srtt_ms",
        help: "smoothed RTT, gain 1/8",
        kernel: "tp->srtt_us >> 3",
        value: |i| f64::from(i.latest.srtt_us) * 1e-3,
    },
    Feature {
        name: "rttvar_ms",
        help: "mean deviation of the RTT, gain 1/4",
        kernel: "tp->mdev_us >> 2",
        value: |i| f64::from(i.latest.rttvar_us) * 1e-3,
    },
    Feature {
        name: "min_rtt_ms",
        help: "least RTT of the flow",
        kernel: "minmax_get(&tp->rtt_min)",
        value: |i| f64::from(i.latest.min_rtt_us) * 1e-3,
    },
    Feature {
        name: "rtt_slope",
        help: "rise of the RTT over the interval, least squares, s/s",
        kernel: "ack_sample->rtt_us",
        value: |i| i.rtt.slope,
    },
    Feature {
        name: "rtt_ratio",
        help: "mean RTT of the interval over the flow's least",
        kernel: "ack_sample->rtt_us, minmax_get(&tp->rtt_min)",
        value: |i| match i.latest.min_rtt_us {
            0 => 1.0,
            min => i.rtt.mean_us / f64::from(min),
        },
    },
    Feature {
        name: "sent_packets",
        help: "packets sent in the interval",
        kernel: "tp->data_segs_out",
        value: |i| f64::from(i.sent),
    },
    Feature {
        name: "delivered_packets",
        help: "packets acknowledged in the interval",
        kernel: "tp->delivered",
        value: |i| f64::from(i.delivered),
    },
    Feature {
        name: "lost_packets",
        help: "packets taken for lost in the interval",
        kernel: "tp->lost",
        value: |i| f64::from(i.lost),
    },
    Feature {
        name: "retransmitted_packets",
        help: "packets sent again in the interval",
        kernel: "tp->total_retrans",
        value: |i| f64::from(i.retransmitted),
    },
    Feature {
        name: "send_ratio",
        help: "packets sent over packets acknowledged in the interval, 1 if none was acknowledged",
        kernel: "tp->data_segs_out, tp->delivered",
        value: |i| match i.delivered {
            0 => 1.0,
            delivered => f64::from(i.sent) / f64::from(delivered),
        },
    },
    Feature {
        name: "loss",
        help: "share of packets lost, of those whose fate became known in the interval",
        kernel: "tp->lost, tp->delivered",
        value: Interval::loss,
    },
    Feature {
        name: "ce_share",
        help: "share of the acknowledged packets that bore a CE mark",
        kernel: "tp->delivered_ce, tp->delivered",
        value: |i| match i.delivered {
            0 => 0.0,
            delivered => f64::from(i.delivered_ce) / f64::from(delivered),
        },
    },
    Feature {
        name: "throughput_mbps",
        help: "acknowledged in the interval, over its length",
        kernel: "tp->delivered",
        value: |i| i.mbps(i.per_second(i.delivered)),
    },
    Feature {
        name: "send_rate_mbps",
        help: "sent in the interval, over its length",
        kernel: "tp->data_segs_out",
        value: |i| i.mbps(i.per_second(i.sent)),
    },
    Feature {
        name: "delivery_rate_mbps",
        help: "newest delivery-rate sample",
        kernel: "tp->rate_delivered, tp->rate_interval_us",
        value: |i| i.mbps(i.delivery_rate),
    },
    Feature {
        name: "max_delivery_rate_mbps",
        help: "largest delivery-rate sample of the flow",
        kernel: "tp->rate_delivered, tp->rate_interval_us",
        value: |i| i.mbps(i.max_delivery_rate),
    },
    Feature {
        name: "app_limited",
        help: "1 if the application gave too little to send, else 0",
        kernel: "tp->app_limited",
        value: |i| f64::from(u8::from(i.latest.has(Record::APP_LIMITED))),
    },
    Feature {
        name: "recovering",
        help: "1 while losses are repaired, else 0",
        kernel: "icsk->icsk_ca_state",
        value: |i| f64::from(u8::from(i.latest.has(Record::RECOVERING))),
    },
    Feature {
        name: "pnc_packets",
        help: "potential network congestion: largest |packets in - out| a second of a known switch",
        kernel: "the measurement agent",
        value: |i| i.network.pnc,
    },
    Feature {
        name: "pna",
        help: "potential network availability: least free share of a known link",
        kernel: "the measurement agent",
        value: |i| i.network.pna,
    },
    Feature {
        name: "network_known",
        help: "share of the path's switches that are known",
        kernel: "the measurement agent",
        value: |i| i.network.known,
    },
    Feature {
        name: "network_age_ms",
        help: "how old the switches' counters are",
        kernel: "the measurement agent",
        value: |i| i.network.age.as_millis_f64(),
    },
];

impl Feature {
    /// The feature of that name.
    pub fn find(name: &str) -> Option<&'static Feature> {
        FEATURES.iter().find(|f| f.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (i, feature) in FEATURES.iter().enumerate() {
            assert!(FEATURES[..i].iter().all(|f| f.name != feature.name));
        }
    }
}
