//! A flow's state at an acknowledgement, in the kernel's terms.

use headway_cc::{PathModel, Time};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A flow's state at an acknowledgement, a digest of several, or a timeout, with the layout of
/// `kernel/bpf/abi.h`.
///
/// A learned controller's [`Monitor`](crate::Monitor) sees nothing else, in any world. The kernel
/// can supply all of it, and therefore every feature. Counts are of packets since the flow began,
/// and they wrap.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Record {
    /// The time on the host's monotonic clock.
    pub now_ns: u64,
    /// The pacing rate in bytes a second; zero without pacing.
    pub pacing_rate: u64,
    /// Packets sent, including retransmissions.
    pub sent: u32,
    /// Packets sent again.
    pub retransmitted: u32,
    /// Packets acknowledged.
    pub delivered: u32,
    /// Packets acknowledged with a CE mark.
    pub delivered_ce: u32,
    /// Packets taken for lost. A packet that arrives later stays counted, as in the kernel.
    pub lost: u32,
    /// Packets neither acknowledged nor taken for lost.
    pub in_flight: u32,
    /// The congestion window in packets.
    pub cwnd: u32,
    /// The size of a full packet on the wire in bytes.
    pub mss: u32,
    /// The RTT sample of this acknowledgement; zero for none.
    pub rtt_us: u32,
    /// The smoothed RTT, gain 1/8.
    pub srtt_us: u32,
    /// The mean deviation of the RTT, gain 1/4.
    pub rttvar_us: u32,
    /// The minimum RTT of the flow.
    pub min_rtt_us: u32,
    /// The newest delivery-rate sample that counts: this many packets in `rate_interval_us`.
    pub rate_delivered: u32,
    /// The time of that sample; zero before the first. A sample that the application limited counts
    /// only if it is larger.
    pub rate_interval_us: u32,
    /// The number of acknowledgements that this record covers; zero at a timeout.
    pub acks: u32,
    /// The flags, such as [`Record::APP_LIMITED`].
    pub flags: u32,
    /// The controller's estimate of the bottleneck's bandwidth, in bytes a second; zero without a
    /// model of the path ([`PathModel`]).
    pub btlbw: u64,
    /// The controller's estimate of the base RTT; zero without a model.
    pub rtprop_us: u32,
    /// The factor of `btlbw` for the pacing rate, times 256.
    pub pacing_gain: u16,
    /// The factor of the BDP for the window, times 256.
    pub cwnd_gain: u16,
}

impl Record {
    /// This record with its counters minus those of an earlier one.
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

    /// This record with its controller's model of the path, if there is one.
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

    /// The application supplied too little data.
    pub const APP_LIMITED: u32 = 1;
    /// The window held the sender back.
    pub const CWND_LIMITED: u32 = 1 << 1;
    /// Losses are being repaired.
    pub const RECOVERING: u32 = 1 << 2;
    /// An action would be carried out now, as far as the base controller is concerned. It is for
    /// the agent, and not a feature.
    pub const STEERABLE: u32 = 1 << 3;
    /// The flow is in fallback. It is for the agent, and not a feature.
    pub const TRIPPED: u32 = 1 << 4;
    /// The flow waits for an answer. It is for the agent, and not a feature.
    pub const ASKS: u32 = 1 << 5;
    /// The receiver has no more room. It is for the guard, and not a feature.
    pub const RWND_LIMITED: u32 = 1 << 6;

    /// The time of the record.
    pub fn now(&self) -> Time {
        Time::from_nanos(self.now_ns)
    }

    /// Is this flag set?
    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}
