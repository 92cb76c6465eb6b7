//! What a host says of a flow at an acknowledgement, in the kernel's own terms.

use headway_cc::{Control, Feedback, Recovery, Time};

/// A flow's state at an acknowledgement (or a digest of several), laid out as in `crates/kernel/bpf/abi.h`.
///
/// It is all that a learned controller's [`Monitor`](crate::Monitor) ever sees, in every world: what the kernel
/// cannot say is not here, so no feature can need it. Counts are of packets since the flow began and wrap.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Record {
    /// When, on the host's monotonic clock.
    pub now_ns: u64,
    /// The pacing rate in bytes a second; zero without pacing.
    pub pacing_rate: u64,
    /// Sent, retransmissions among them.
    pub sent: u32,
    /// Sent again.
    pub retransmitted: u32,
    /// Acknowledged.
    pub delivered: u32,
    /// Acknowledged with a CE mark.
    pub delivered_ce: u32,
    /// Taken for lost.
    pub lost: u32,
    /// Not yet acknowledged nor taken for lost.
    pub in_flight: u32,
    /// The congestion window in packets.
    pub cwnd: u32,
    /// The size of a full packet on the wire in bytes.
    pub mss: u32,
    /// The sample that this acknowledgement gave; zero for none.
    pub rtt_us: u32,
    /// Smoothed, gain 1/8.
    pub srtt_us: u32,
    /// Mean deviation, gain 1/4.
    pub rttvar_us: u32,
    /// The least sample of the flow.
    pub min_rtt_us: u32,
    /// The delivery-rate sample: so many packets ...
    pub rate_delivered: u32,
    /// ... in so long a time; zero for no sample.
    pub rate_interval_us: u32,
    /// [`Record::APP_LIMITED`], [`Record::CWND_LIMITED`], [`Record::RECOVERING`].
    pub flags: u32,
}

impl Record {
    /// The application gave too little to send.
    pub const APP_LIMITED: u32 = 1;
    /// The window held the sender back.
    pub const CWND_LIMITED: u32 = 1 << 1;
    /// Losses are being repaired.
    pub const RECOVERING: u32 = 1 << 2;

    /// What a simulated or user-space transport says, in the kernel's units. `retransmitted` counts the
    /// packets sent again.
    pub fn of(feedback: &Feedback<'_>, control: &Control, mss: u32, retransmitted: u32) -> Record {
        let packets = |bytes: headway_cc::Bytes| (bytes.get() / u64::from(mss)) as u32;
        let micros =
            |d: headway_cc::Duration| (d.as_nanos() / 1000).min(u64::from(u32::MAX)) as u32;
        let rate = feedback.rate.as_ref();
        let flag = |on: bool, bit: u32| if on { bit } else { 0 };
        Record {
            now_ns: feedback.now.as_nanos(),
            pacing_rate: control.pacing_rate.map_or(0, |rate| rate.as_bps() / 8),
            sent: packets(feedback.counters.sent),
            retransmitted,
            delivered: packets(feedback.counters.delivered),
            delivered_ce: packets(feedback.counters.ce),
            lost: packets(feedback.counters.lost),
            in_flight: packets(feedback.in_flight),
            cwnd: (control.cwnd.get() / u64::from(mss)).min(u64::from(u32::MAX)) as u32,
            mss,
            // A sample of no length would say that there is none.
            rtt_us: feedback.rtt.map_or(0, |rtt| micros(rtt).max(1)),
            srtt_us: micros(feedback.rtt_stats.smoothed),
            rttvar_us: micros(feedback.rtt_stats.variation),
            min_rtt_us: micros(feedback.rtt_stats.min),
            rate_delivered: rate.map_or(0, |r| packets(r.delivered)),
            rate_interval_us: rate.map_or(0, |r| micros(r.interval)),
            flags: flag(feedback.app_limited, Record::APP_LIMITED)
                | flag(feedback.cwnd_limited, Record::CWND_LIMITED)
                | flag(
                    matches!(feedback.recovery, Recovery::Recovery | Recovery::Loss),
                    Record::RECOVERING,
                ),
        }
    }

    /// When.
    pub fn now(&self) -> Time {
        Time::from_nanos(self.now_ns)
    }

    /// Is this flag set?
    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}
