//! What a host says of a flow at an acknowledgement, in the kernel's own terms.

use headway_cc::{PathModel, Time};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A flow's state at an acknowledgement, a digest of several, or a timeout, laid out as in
/// `crates/kernel/bpf/abi.h`.
///
/// It is all that a learned controller's [`Monitor`](crate::Monitor) ever sees, in every world:
/// what the kernel cannot say is not here, so no feature can need it. Counts are of packets since
/// the flow began and wrap.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
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
    /// Taken for lost; one that arrives after all stays counted, as in the kernel.
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
    /// The newest delivery-rate sample that counts: this many packets ...
    pub rate_delivered: u32,
    /// ... in this time; zero before the first. One that the application limited counts only
    /// if it is larger.
    pub rate_interval_us: u32,
    /// How many acknowledgements this stands for; zero at a timeout.
    pub acks: u32,
    /// [`Record::APP_LIMITED`] and so on.
    pub flags: u32,
    /// The bottleneck's bandwidth as the controller estimates it, in bytes a second; zero where it
    /// has no model of the path ([`PathModel`]).
    pub btlbw: u64,
    /// The round trip's propagation time as the controller estimates it; zero where it has no
    /// model.
    pub rtprop_us: u32,
    /// By which it multiplies `btlbw` for its pacing rate, times 256.
    pub pacing_gain: u16,
    /// By which it multiplies the BDP for its window, times 256.
    pub cwnd_gain: u16,
}

impl Record {
    /// The same with its counters less those of an earlier one.
    pub fn since(&self, before: &Record) -> Record {
        Record {
            sent: self.sent.wrapping_sub(before.sent),
            retransmitted: self.retransmitted.wrapping_sub(before.retransmitted),
            delivered: self.delivered.wrapping_sub(before.delivered),
            delivered_ce: self.delivered_ce.wrapping_sub(before.delivered_ce),
            lost: self.lost.wrapping_sub(before.lost),
            ..*self
        }
    }

    /// The same with what its controller takes the path for, if it has a model of it.
    #[must_use]
    pub fn with_model(self, model: Option<PathModel>) -> Record {
        let gain = |gain: f64| (gain * 256.0).clamp(0.0, f64::from(u16::MAX)) as u16;
        model.map_or(self, |model| Record {
            btlbw: model.btlbw.as_bps() / 8,
            rtprop_us: (model.rtprop.as_nanos() / 1000).min(u64::from(u32::MAX)) as u32,
            pacing_gain: gain(model.pacing_gain),
            cwnd_gain: gain(model.cwnd_gain),
            ..self
        })
    }

    /// The application gave too little to send.
    pub const APP_LIMITED: u32 = 1;
    /// The window held the sender back.
    pub const CWND_LIMITED: u32 = 1 << 1;
    /// Losses are being repaired.
    pub const RECOVERING: u32 = 1 << 2;
    /// An action would be carried out now, as far as the base controller goes. For the agent: no
    /// feature.
    pub const STEERABLE: u32 = 1 << 3;
    /// The guard has the flow. For the agent: no feature.
    pub const TRIPPED: u32 = 1 << 4;
    /// An answer is waited for. For the agent: no feature.
    pub const ASKS: u32 = 1 << 5;
    /// The receiver has room for no more. For the guard: no feature.
    pub const RWND_LIMITED: u32 = 1 << 6;

    /// When.
    pub fn now(&self) -> Time {
        Time::from_nanos(self.now_ns)
    }

    /// Is this flag set?
    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}
