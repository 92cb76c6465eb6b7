//! Where the simulator and the kernel get each feature from.

/// What a feature is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The host's clock.
    Clock,
    /// The congestion window.
    Cwnd,
    /// Packets in flight.
    InFlight,
    /// The size of a full packet.
    Mss,
    /// The pacing rate.
    PacingRate,
    /// RTT samples.
    Rtt,
    /// The smoothed RTT.
    Srtt,
    /// The RTT's mean deviation.
    RttVar,
    /// The flow's minimum RTT.
    MinRtt,
    /// Packets sent.
    Sent,
    /// Packets sent again.
    Retransmitted,
    /// Packets acknowledged.
    Delivered,
    /// Packets acknowledged with a mark.
    DeliveredCe,
    /// Packets taken for lost.
    Lost,
    /// Delivery-rate samples.
    Rate,
    /// The base controller's estimates of the path.
    Model,
    /// Whether the application limits the flow.
    AppLimited,
    /// Whether the window limits the flow.
    CwndLimited,
    /// Whether losses are being repaired.
    Recovering,
    /// Averages that each acknowledgement updates.
    Averages,
    /// The agent's own actions.
    Agent,
    /// Reports of the measurement agent.
    Network,
}

impl Source {
    /// Where the simulator and Headway's transport over UDP get it; empty if it is only an average.
    pub fn simulator(self) -> &'static str {
        match self {
            Source::Clock => "`Feedback::now`",
            Source::Cwnd => "`Control::cwnd`",
            Source::InFlight => "`Feedback::in_flight`",
            Source::Mss => "`Setup::mss`",
            Source::PacingRate => "`Control::pacing_rate`",
            Source::Rtt => "`Feedback::rtt`",
            Source::Srtt => "`RttStats::smoothed`",
            Source::RttVar => "`RttStats::variation`",
            Source::MinRtt => "`RttStats::min`",
            Source::Sent => "`on_sent`",
            Source::Retransmitted => "`Sent::retransmission`",
            Source::Delivered => "`Counters::delivered`",
            Source::DeliveredCe => "`Counters::ce`",
            Source::Lost => "`Feedback::lost_bytes`, `on_rto`",
            Source::Rate => "`Feedback::rate`",
            Source::Model => "`Tunable::model`",
            Source::AppLimited => "`Feedback::app_limited`",
            Source::CwndLimited => "`Feedback::cwnd_limited`",
            Source::Recovering => "`Feedback::recovery`",
            Source::Averages => "",
            Source::Agent => "`Learned`",
            Source::Network => "`NetworkView`",
        }
    }

    /// Where the kernel gets it; empty if it is only an average.
    pub fn kernel(self) -> &'static str {
        match self {
            Source::Clock => "`bpf_ktime_get_ns()`",
            Source::Cwnd => "`tp->snd_cwnd`",
            Source::InFlight => {
                "`tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out`"
            }
            Source::Mss => "`tp->mss_cache`, `tp->tcp_header_len`",
            Source::PacingRate => "`sk->sk_pacing_rate`",
            Source::Rtt => "`ack_sample->rtt_us`",
            Source::Srtt | Source::RttVar | Source::MinRtt => {
                "kept by the program over `ack_sample->rtt_us`"
            }
            Source::Sent => "`tp->data_segs_out`",
            Source::Retransmitted => "`tp->total_retrans`",
            Source::Delivered => "`tp->delivered`",
            Source::DeliveredCe => "`tp->delivered_ce`",
            Source::Lost => "`tp->lost`",
            Source::Rate => "`tp->rate_delivered`, `tp->rate_interval_us`",
            Source::Model => "`struct bbr`: `bw`, `min_rtt_us`, `pacing_gain`, `cwnd_gain`",
            Source::AppLimited => "`tp->app_limited`",
            Source::CwndLimited => "`tp->is_cwnd_limited`",
            Source::Recovering => "`icsk->icsk_ca_state`",
            Source::Averages => "",
            Source::Agent => "the agent",
            Source::Network => "the measurement agent",
        }
    }
}
