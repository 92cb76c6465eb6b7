//! The table of features.

use super::Rounding::{AtPeak, Exact, Micros, MicrosOfRtt, MicrosOverInterval, OfEqualSamples};
use super::{Feature, Source};
use crate::{Interval, Record};

macro_rules! features {
    ($($name:literal: $help:literal; $($source:ident)+, $rounding:expr, $value:expr;)*) => {
        &[$(Feature {
            name: $name,
            help: $help,
            sources: &[$(Source::$source),+],
            rounding: $rounding,
            value: $value,
        }),*]
    };
}

/// All features. Each is computed from [`Record`]s alone, which every world supplies
/// (`docs/features.md`).
#[rustfmt::skip]
pub static FEATURES: &[Feature] = features! {
    // Time and the agent.
    "interval_ms": "time since the last decision";
        Clock, Exact, |i| i.length.as_millis_f64();
    "time_ms": "age of the flow (Owl's time stamp, 4 ms a jiffy where HZ is 250)";
        Clock, Exact, |i| i.age.as_millis_f64();
    "acks": "acknowledgements that arrived in the interval";
        Clock, Exact, |i| f64::from(i.acks);
    "action_age_ms": "how long the last action took from its observation to its effect";
        Agent, Exact, |i| i.action_age.as_millis_f64();
    // Window and rates.
    "cwnd_packets": "congestion window";
        Cwnd, Exact, |i| f64::from(i.latest.cwnd);
    "in_flight_packets": "packets neither acknowledged nor taken for lost";
        InFlight, Exact, |i| f64::from(i.latest.in_flight);
    "writable_packets": "congestion window minus packets in flight, at least 0";
        Cwnd InFlight, Exact, |i| f64::from(i.latest.cwnd.saturating_sub(i.latest.in_flight));
    "mss_bytes": "size of a full packet on the wire";
        Mss, Exact, |i| f64::from(i.latest.mss);
    "pacing_rate_mbps": "pacing rate; zero without pacing";
        PacingRate, Exact, |i| i.latest.pacing_rate as f64 * 8e-6;
    "pacing_share": "pacing rate divided by `max_throughput_mbps`";
        PacingRate Delivered Mss, Exact, |i| ratio(i.latest.pacing_rate as f64 * 8e-6, i.mbps(i.max_throughput), 0.0);
    // Round trips.
    "rtt_ms": "mean RTT of the interval";
        Rtt, Micros(2), |i| i.rtt.mean_us * 1e-3;
    "rtt_latest_ms": "newest RTT sample";
        Rtt, Micros(2), |i| f64::from(i.rtt.latest_us) * 1e-3;
    "rtt_change_ms": "newest RTT sample minus the one before it";
        Rtt, Micros(2), |i| i.rtt.change_us * 1e-3;
    "rtt_growth": "mean RTT of the interval divided by that of the interval before";
        Rtt, MicrosOfRtt(4), |i| i.rtt.growth;
    "rtt_slope": "rise of the RTT over the interval, least squares, s/s";
        Rtt Clock, MicrosOverInterval(20), |i| i.rtt.slope;
    "rtt_ratio": "mean RTT of the interval divided by the flow's minimum RTT";
        Rtt MinRtt, MicrosOfRtt(4), |i| ratio(i.rtt.mean_us, f64::from(i.latest.min_rtt_us), 1.0);
    "min_rtt_10s_ms": "minimum RTT sample of the last 10 s (Owl's RTTmin, Eq. 7), counted from the newest, to 10 ms";
        Rtt Clock, Micros(2), |i| f64::from(i.min_rtt_10s_us) * 1e-3;
    "rtt_ratio_10s": "mean RTT of the interval divided by the minimum RTT of the last 10 s";
        Rtt Clock, MicrosOfRtt(4), |i| ratio(i.rtt.mean_us, f64::from(i.min_rtt_10s_us), 1.0);
    "min_rtt_10s_age_s": "how long before the newest RTT sample `min_rtt_10s_ms` was last seen, to 10 ms; after 10 s it is forgotten";
        Rtt Clock, OfEqualSamples, |i| i.min_rtt_10s_age.as_secs_f64();
    "srtt_ms": "smoothed RTT, gain 1/8";
        Srtt, Micros(2), |i| f64::from(i.latest.srtt_us) * 1e-3;
    "rttvar_ms": "mean deviation of the RTT, gain 1/4";
        RttVar, Micros(4), |i| f64::from(i.latest.rttvar_us) * 1e-3;
    "min_rtt_ms": "minimum RTT of the flow";
        MinRtt, Micros(2), |i| f64::from(i.latest.min_rtt_us) * 1e-3;
    "min_rtt_share": "minimum RTT of the flow divided by the smoothed RTT";
        MinRtt Srtt, MicrosOfRtt(4), |i| ratio(f64::from(i.latest.min_rtt_us), f64::from(i.latest.srtt_us), 1.0);
    "queue_delay_ms": "mean RTT of the interval minus the flow's minimum RTT";
        Rtt MinRtt, Micros(4), |i| (i.rtt.mean_us - f64::from(i.latest.min_rtt_us)).max(0.0) * 1e-3;
    // Packets in the interval.
    "sent_packets": "packets sent in the interval, retransmissions included";
        Sent, Exact, |i| f64::from(i.sent);
    "delivered_packets": "packets acknowledged in the interval";
        Delivered, Exact, |i| f64::from(i.delivered);
    "lost_packets": "packets taken for lost in the interval";
        Lost, Exact, |i| f64::from(i.lost);
    "retransmitted_packets": "packets retransmitted in the interval";
        Retransmitted, Exact, |i| f64::from(i.retransmitted);
    "send_ratio": "packets sent divided by packets acknowledged in the interval; 1 if none was acknowledged";
        Sent Delivered, Exact, |i| ratio(f64::from(i.sent), f64::from(i.delivered), 1.0);
    "delivered_share": "packets acknowledged in the interval divided by the congestion window";
        Delivered Cwnd, Exact, |i| ratio(f64::from(i.delivered), f64::from(i.latest.cwnd), 0.0);
    "loss": "packets lost divided by packets lost or acknowledged in the interval";
        Lost Delivered, Exact, |i| i.loss();
    "ce_share": "share of the acknowledged packets that had a CE mark";
        DeliveredCe Delivered, Exact, |i| ratio(f64::from(i.delivered_ce), f64::from(i.delivered), 0.0);
    // Packets since the flow began.
    "sent_total_packets": "packets sent since the flow began";
        Sent, Exact, |i| f64::from(i.latest.sent);
    "delivered_total_packets": "packets acknowledged since the flow began";
        Delivered, Exact, |i| f64::from(i.latest.delivered);
    "lost_total_packets": "packets taken for lost since the flow began";
        Lost, Exact, |i| f64::from(i.latest.lost);
    "retransmitted_total_packets": "packets retransmitted since the flow began";
        Retransmitted, Exact, |i| f64::from(i.latest.retransmitted);
    // Rates.
    "throughput_mbps": "data acknowledged in the interval divided by its length";
        Delivered Mss Clock, Exact, |i| i.mbps(i.per_second(i.delivered));
    "max_throughput_mbps": "largest throughput of the flow, over intervals of at least 20 ms together, so that a burst does not count";
        Delivered Mss Clock, Exact, |i| i.mbps(i.max_throughput);
    "recent_throughput_mbps": "throughput, exponentially weighted with a time constant of 0.7 `min_rtt_10s_ms`";
        Delivered Mss Rtt Clock, MicrosOfRtt(4), |i| i.mbps(i.recent_throughput);
    "peak_throughput_mbps": "largest `recent_throughput_mbps` of the last 100 ms; an interval counts as at most 10 ms, so that a pause of the link does not erase the maximum";
        Delivered Mss Rtt Clock, MicrosOfRtt(4), |i| i.mbps(i.peak_throughput);
    "excess_packets": "congestion window minus (`peak_throughput_mbps` x `min_rtt_10s_ms`): the packets that would queue";
        Cwnd Delivered Rtt Clock, AtPeak(8), |i| f64::from(i.latest.cwnd) - i.peak_throughput * f64::from(i.min_rtt_10s_us) * 1e-6;
    "throughput_share": "throughput divided by `max_throughput_mbps`; a burst may exceed 1";
        Delivered Clock, Exact, |i| ratio(i.per_second(i.delivered), i.max_throughput, 0.0);
    "loss_rate_share": "packets taken for lost per second, divided by `max_throughput_mbps`";
        Lost Delivered Clock, Exact, |i| ratio(i.per_second(i.lost), i.max_throughput, 0.0);
    "send_rate_mbps": "data sent in the interval divided by its length";
        Sent Mss Clock, Exact, |i| i.mbps(i.per_second(i.sent));
    "delivery_rate_mbps": "newest delivery-rate sample; an application-limited sample counts only if it is larger";
        Rate Mss, MicrosOfRtt(4), |i| i.mbps(i.delivery_rate);
    "max_delivery_rate_mbps": "largest delivery-rate sample of the flow";
        Rate Mss, MicrosOfRtt(4), |i| i.mbps(i.max_delivery_rate);
    // BBR's model of the path.
    "btlbw_mbps": "BBR's estimate of the bottleneck's bandwidth; zero if the base controller is not BBR";
        Model Mss, MicrosOfRtt(4), |i| i.latest.btlbw as f64 * 8e-6;
    "rtprop_ms": "BBR's estimate of the base RTT";
        Model, Micros(2), |i| f64::from(i.latest.rtprop_us) * 1e-3;
    "rtprop_ratio": "minimum RTT sample of the interval divided by `rtprop_ms`";
        Model Rtt, MicrosOfRtt(4), |i| ratio(f64::from(i.rtt.min_us), f64::from(i.latest.rtprop_us), 1.0);
    "pacing_gain": "BBR's gain of the pacing rate";
        Model, Exact, |i| f64::from(i.latest.pacing_gain) / 256.0;
    "cwnd_gain": "BBR's gain of the window";
        Model, Exact, |i| f64::from(i.latest.cwnd_gain) / 256.0;
    // States.
    "app_limited": "1 if the flow was application-limited, else 0";
        AppLimited, Exact, |i| flag(i, Record::APP_LIMITED);
    "cwnd_limited": "1 if the window held the sender back, else 0";
        CwndLimited, Exact, |i| flag(i, Record::CWND_LIMITED);
    "recovering": "1 during recovery, else 0";
        Recovering, Exact, |i| flag(i, Record::RECOVERING);
    // Averages over acknowledgements (Rax, Remy).
    "ack_gap_ewma8_ms": "time between acknowledgements, exponentially weighted over the flow, gain 1/8";
        Averages Clock, Exact, |i| i.averages.ack_gap_us.fast * 1e-3;
    "ack_gap_ewma256_ms": "time between acknowledgements, exponentially weighted over the flow, gain 1/256";
        Averages Clock, Exact, |i| i.averages.ack_gap_us.slow * 1e-3;
    "rtt_ewma8_ms": "RTT samples, exponentially weighted over the flow, gain 1/8";
        Averages Rtt, Micros(2), |i| i.averages.rtt_us.fast * 1e-3;
    "rtt_ewma256_ms": "RTT samples, exponentially weighted over the flow, gain 1/256";
        Averages Rtt, Micros(2), |i| i.averages.rtt_us.slow * 1e-3;
    "loss_ewma8": "loss (1 for a lost packet, 0 for one that arrived), exponentially weighted over the flow, gain 1/8";
        Averages Lost Delivered, Exact, |i| i.averages.loss.fast;
    "loss_ewma256": "loss (1 for a lost packet, 0 for one that arrived), exponentially weighted over the flow, gain 1/256";
        Averages Lost Delivered, Exact, |i| i.averages.loss.slow;
    "cwnd_ewma8_packets": "congestion window, exponentially weighted over the flow, gain 1/8";
        Averages Cwnd, Exact, |i| i.averages.cwnd.fast;
    "cwnd_ewma256_packets": "congestion window, exponentially weighted over the flow, gain 1/256";
        Averages Cwnd, Exact, |i| i.averages.cwnd.slow;
    // The extremes of the interval.
    "rtt_min_ms": "minimum of the RTT samples over the interval's acknowledgements";
        Rtt, Micros(2), |i| of_samples(i, i.rtt.min_us) * 1e-3;
    "rtt_max_ms": "maximum of the RTT samples over the interval's acknowledgements";
        Rtt, Micros(2), |i| of_samples(i, i.rtt.max_us) * 1e-3;
    // Reports of the network's switches.
    "pnc_packets": "partial network congestion: largest |packets in - packets out| per second of a known switch";
        Network, Exact, |i| i.network.pnc;
    "pna": "partial network availability: smallest free share of a known link";
        Network, Exact, |i| i.network.pna;
    "network_known": "share of the path's switches that are known";
        Network, Exact, |i| i.network.known;
    "network_age_ms": "age of the switches' counters; after 10 s without new ones no switch counts as known";
        Network, Exact, |i| i.network.age.as_millis_f64();
};

/// `a` divided by `b`, or `otherwise` if `b` is zero.
fn ratio(a: f64, b: f64, otherwise: f64) -> f64 {
    match b > 0.0 {
        true => a / b,
        false => otherwise,
    }
}

/// A number of the interval's RTT samples; 0 without samples.
fn of_samples(interval: &Interval, us: u32) -> f64 {
    match interval.rtt.samples {
        0 => 0.0,
        _ => f64::from(us),
    }
}

/// 1 if the flag was set at the last record, else 0.
fn flag(interval: &Interval, flag: u32) -> f64 {
    f64::from(u8::from(interval.latest.has(flag)))
}
