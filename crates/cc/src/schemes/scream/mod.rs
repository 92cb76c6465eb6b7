//! SCReAM version 2 (draft-ietf-ccwg-rfc8298bis-screamv2-01): a reference window bounds what may be
//! in flight, and gives the bitrate for a video encoder.
//!
//! Names are the draft's. Its sections have no numbers in the text that is followed (its
//! repository, August 2026), so comments cite titles. Here the encoder always produces as much as
//! it is asked for, in packets rather than in frames. What it produces, not a window, reaches the
//! link.

mod l4s;
mod late;
mod qdelay;

#[cfg(test)]
mod tests;

use l4s::MarkedShare;
use late::LatePackets;
use qdelay::{DelayTarget, QueueDelay};

use crate::{
    Bytes, CongestionControl, Control, Duration, Ecn, Family, Feedback, Kind, Need, Param, Probe,
    Rate, Rto, Scheme, Sent, Setup, Stamp, Tag, Time, Values,
};

const ECN: Param = Param {
    name: "ecn",
    help: "use ECN: l4s reacts to the share of marks (ECT(1), RFC 9331), classic reacts to a mark as to a small loss (ECT(0))",
    kind: Kind::Choice(&["off", "l4s", "classic"]),
};
const COMPETING: Param = Param {
    name: "competing",
    help: "whether more queueing delay is accepted where others fill the queue",
    kind: Kind::Choice(&["adapt", "ignore"]),
};
const DRAIN: Param = Param {
    name: "drain",
    help: "whether a queue that has stood for long is drained, to measure the minimum delay again",
    kind: Kind::Choice(&["on", "off"]),
};
const MIN_BITRATE: Param = Param {
    name: "min_bitrate",
    help: "lowest bitrate of the encoder",
    kind: Kind::Rate {
        default: Rate::from_bps(50_000),
        min: Rate::from_bps(5_000),
        max: Rate::from_bps(10_000_000),
    },
};
const MAX_BITRATE: Param = Param {
    name: "max_bitrate",
    help: "highest bitrate of the encoder, or min_bitrate if that is higher",
    kind: Kind::Rate {
        default: Rate::from_bps(1_000_000_000),
        min: Rate::from_bps(100_000),
        max: Rate::from_bps(100_000_000_000),
    },
};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "scream",
    family: Family::Delay,
    summary: "keeps queueing delay at half of a target by a window, and sets the media bitrate from it",
    source: "draft-ietf-ccwg-rfc8298bis-screamv2-01",
    deviations: &[
        "The encoder is always full and produces packets, not frames: packets leave evenly at the target bitrate, without the headroom of 1.5 that drains frames, and nothing ever waits behind the window.",
        "Every packet's arrival time and mark come back with its acknowledgement at once, where the draft reports 16 packets or 40 ms together.",
        "The transport decides which packets are missing, and sends their data again. SCReAM's reordering window \
         begins at that decision. At the window's end SCReAM reacts to a loss. The window is the longest time from \
         such a decision to the packet's late arrival, at most one RTT.",
        "Four functions that the draft calls optional are left out: jitter filtering, losses forgiven below 1%, policer detection, and less reduction where the bitrate has already fallen.",
        "A timeout has the effect of a loss, which is never undone. The draft does not mention timeouts.",
        "The delay target is adjusted as often, and the rate of loss events averaged in the same way, as in Ericsson's code, because the draft states neither.",
    ],
    needs: &[
        Need::PerPacket,
        Need::Pacing,
        Need::ReceiverTime,
        Need::EcnEcho,
    ],
    params: &[ECN, COMPETING, DRAIN, MIN_BITRATE, MAX_BITRATE],
    build: |setup, values| Box::new(Scream::new(setup, values)),
    receiver: None,
    router: None,
};

/// The draft's constants, with its names.
const MIN_REF_WND: f64 = 3000.0;
const BYTES_IN_FLIGHT_HEAD_ROOM: f64 = 1.5;
const BETA_LOSS: f64 = 0.7;
const BETA_ECN: f64 = 0.8;
const POST_CONGESTION_DELAY_RTTS: f64 = 100.0;
const MUL_INCREASE_FACTOR: f64 = 0.02;
const VIRTUAL_RTT: Duration = Duration::from_millis(25);
/// ref_wnd_overhead is always REF_WND_OVERHEAD_MAX, since there is no jitter filtering.
const REF_WND_OVERHEAD: f64 = 3.0;
const RATE_PACE_MIN: Rate = Rate::from_bps(50_000);
/// pace_bitrate before anything is known.
const INITIAL_PACE: Rate = Rate::from_bps(1_000_000);
const PACKET_OVERHEAD: f64 = 20.0;
/// The factor below what window and RTT allow, so that nothing waits at the sender ("Media Rate
/// Control").
const RATE_DOWNSCALE: f64 = 1.2;
/// The number of round trips at half the bitrate that drain a standing queue ("Clock drift").
const DRAIN_RTTS: u64 = 5;
const MIN_DRAIN: Duration = Duration::from_millis(200);

/// The reason for a reduction of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Loss,
    Marked,
    /// Queueing delay, which counts as if packets were marked.
    VirtualMarked,
}

/// The state of one SCReAM flow.
#[derive(Debug)]
pub struct Scream {
    mss: f64,
    ecn: Ecn,
    adapts_target: bool,
    drains: bool,
    min_bitrate: f64,
    max_bitrate: f64,

    ref_wnd: f64,
    /// ref_wnd_i: the window at the last congestion.
    inflexion: f64,
    inflexion_update_allowed: bool,
    last_congestion_detected: Option<Time>,
    last_reaction: Option<Time>,
    /// Signs of congestion since the last reaction.
    loss_detected: bool,
    data_units_marked: bool,

    qdelay: QueueDelay,
    target: DelayTarget,
    marks: MarkedShare,
    s_rtt: Duration,
    round_began: Time,
    round_lossy: bool,
    late: LatePackets,
    max_bytes_in_flight: f64,
    max_bytes_in_flight_prev: f64,
    /// When the current drain began, if there is one.
    drain_began: Option<Time>,

    target_bitrate: f64,
    pacing_rate: Rate,
}

impl Scream {
    /// A flow at its smallest window.
    pub fn new(setup: &Setup, values: &Values) -> Scream {
        let bps = |param| values.rate(param).as_bps() as f64;
        Scream {
            mss: setup.mss.as_f64(),
            ecn: match values.choice(&ECN) {
                "l4s" => Ecn::Ect1,
                "classic" => Ecn::Ect0,
                _ => Ecn::NotEct,
            },
            adapts_target: values.choice(&COMPETING) == "adapt",
            drains: values.choice(&DRAIN) == "on",
            min_bitrate: bps(&MIN_BITRATE),
            max_bitrate: bps(&MAX_BITRATE).max(bps(&MIN_BITRATE)),
            ref_wnd: MIN_REF_WND,
            inflexion: 1.0,
            inflexion_update_allowed: true,
            last_congestion_detected: None,
            last_reaction: None,
            loss_detected: false,
            data_units_marked: false,
            qdelay: QueueDelay::default(),
            target: DelayTarget::new(setup.start),
            marks: MarkedShare::default(),
            s_rtt: Duration::ZERO,
            round_began: setup.start,
            round_lossy: false,
            late: LatePackets::default(),
            max_bytes_in_flight: 0.0,
            max_bytes_in_flight_prev: 0.0,
            drain_began: None,
            target_bitrate: bps(&MIN_BITRATE),
            pacing_rate: INITIAL_PACE,
        }
    }

    /// ref_wnd_ratio: the share of the window that one packet is.
    fn ref_wnd_ratio(&self) -> f64 {
        (self.mss / self.ref_wnd).min(1.0)
    }

    /// s_rtt in units of VIRTUAL_RTT.
    fn rtt_ratio(&self) -> f64 {
        self.s_rtt.as_secs_f64() / VIRTUAL_RTT.as_secs_f64()
    }

    /// The time since `then` in units of max(VIRTUAL_RTT, s_rtt).
    fn rtts_since(&self, now: Time, then: Option<Time>) -> f64 {
        then.map_or(f64::INFINITY, |then| {
            now.since(then).as_secs_f64() / self.s_rtt.max(VIRTUAL_RTT).as_secs_f64()
        })
    }

    /// scl_t: the distance of the window from the last congested one, 0.1 to 1.
    fn distance_from_inflexion(&self) -> f64 {
        let distance = 8.0 * (self.ref_wnd - self.inflexion) / self.inflexion;
        (distance * distance).clamp(0.1, 1.0)
    }

    /// The reason to react now, at most once in min(VIRTUAL_RTT, s_rtt).
    fn congestion(&self, now: Time) -> Option<Reason> {
        let spacing = VIRTUAL_RTT.min(self.s_rtt);
        if self.last_reaction.is_some_and(|t| now.since(t) < spacing) {
            None
        } else if self.loss_detected {
            Some(Reason::Loss)
        } else if self.data_units_marked {
            Some(Reason::Marked)
        } else if self.qdelay.average > self.target.value / 2.0 {
            Some(Reason::VirtualMarked)
        } else {
            None
        }
    }

    /// l4s_alpha_v: from 0 at half the target to 1 at the target.
    fn virtual_alpha(&self) -> f64 {
        let half = self.target.value / 2.0;
        ((self.qdelay.average - half) / half).clamp(0.0, 1.0)
    }

    /// "Reference Window Reduction".
    fn reduce(&mut self, now: Time, reason: Reason, scl: f64) {
        if std::mem::take(&mut self.inflexion_update_allowed) {
            self.inflexion = self.ref_wnd;
        }
        // Reductions come every VIRTUAL_RTT, so each is smaller on a long path.
        let spread = self.rtt_ratio().max(1.0);
        match reason {
            Reason::Loss => self.ref_wnd *= BETA_LOSS,
            Reason::Marked if self.ecn == Ecn::Ect1 => {
                let mut backoff = self.marks.alpha / 2.0 / spread;
                if self.qdelay.latest < self.target.value / 4.0 {
                    backoff *= scl.max(0.25);
                }
                if self.rtts_since(now, self.last_reaction) > POST_CONGESTION_DELAY_RTTS {
                    self.ref_wnd = self.ref_wnd.min(self.max_bytes_in_flight_prev);
                }
                self.ref_wnd *= 1.0 - backoff;
            }
            Reason::Marked => self.ref_wnd *= BETA_ECN,
            Reason::VirtualMarked => self.ref_wnd *= 1.0 - self.virtual_alpha() / 2.0 / spread,
        }
        self.ref_wnd = self.ref_wnd.max(MIN_REF_WND);
        self.last_reaction = Some(now);
        (self.loss_detected, self.data_units_marked) = (false, false);
    }

    /// "Reference Window Increase", for `acked` bytes that were not marked.
    fn increase(&mut self, now: Time, acked: f64, scl: f64) {
        let rtts = self.rtts_since(now, self.last_congestion_detected);
        let post_congestion_scale = (rtts / POST_CONGESTION_DELAY_RTTS).min(1.0);
        let multiplicative =
            1.0 + MUL_INCREASE_FACTOR * self.ref_wnd / self.mss * post_congestion_scale * scl;
        let increment = acked
            * self.ref_wnd_ratio()
            * self.rtt_ratio().min(1.0)
            * scl.max(0.25)
            * multiplicative;
        let in_flight = self.max_bytes_in_flight.max(self.max_bytes_in_flight_prev);
        let max_allowed = self.mss + in_flight * BYTES_IN_FLIGHT_HEAD_ROOM;
        let grown = self.ref_wnd + increment;
        if grown <= max_allowed && self.target_bitrate < self.max_bitrate && increment > 0.0 {
            self.ref_wnd = grown;
            self.inflexion_update_allowed = true;
        }
    }

    fn on_round(&mut self, now: Time) {
        self.round_began = now;
        self.max_bytes_in_flight_prev = self.max_bytes_in_flight;
        self.max_bytes_in_flight = 0.0;
        self.target.on_round(std::mem::take(&mut self.round_lossy));
        if self.drains && self.qdelay.on_round(self.target.value) {
            self.drain_began = Some(now);
        }
    }

    /// "Clock drift issues and remedies": drains for max(5 s_rtt, 0.2 s). It uses the current
    /// s_rtt, which falls as the queue empties.
    fn is_draining(&mut self, now: Time) -> bool {
        let lasts = MIN_DRAIN.max(self.s_rtt * DRAIN_RTTS);
        self.drain_began = self.drain_began.filter(|&began| now.since(began) < lasts);
        self.drain_began.is_some()
    }

    /// "Media Rate Control". PACKET_OVERHEAD bytes of each packet are not media.
    fn update_rate(&mut self, now: Time) {
        let small_window = 1.0 - (self.ref_wnd_ratio() - 0.1).clamp(0.0, 0.2);
        let draining = if self.is_draining(now) { 0.5 } else { 1.0 };
        let wire_per_media = 1.0 + PACKET_OVERHEAD / self.mss;
        let bitrate = 8.0 * self.ref_wnd / self.s_rtt.as_secs_f64();
        let bitrate = bitrate * small_window * draining / (RATE_DOWNSCALE * wire_per_media);
        self.target_bitrate = bitrate.max(self.min_bitrate).min(self.max_bitrate);
        self.pacing_rate =
            Rate::from_bps_f64(self.target_bitrate * wire_per_media).max(RATE_PACE_MIN);
    }
}

impl CongestionControl for Scream {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.max_bytes_in_flight = self.max_bytes_in_flight.max(sent.in_flight.as_f64());
        Tag::NONE
    }

    fn on_feedback(&mut self, f: &Feedback<'_>) {
        // A host with a coarse clock may measure an RTT of zero.
        self.s_rtt = f.rtt_stats.smoothed.max(Duration::from_micros(1));
        let mut marked = Bytes::ZERO;
        for acked in f.acked {
            let is_marked = acked.ecn == Ecn::Ce;
            self.marks.on_acked(is_marked);
            if is_marked {
                marked += acked.size;
            }
            self.qdelay
                .on_acked(f.now, acked, VIRTUAL_RTT.min(self.s_rtt));
        }
        self.marks.update(f.now, self.s_rtt);
        if self.adapts_target {
            self.target.adjust(f.now, self.qdelay.latest);
        }
        if f.now.since(self.round_began) >= self.s_rtt {
            self.on_round(f.now);
        }

        let lossy = self.late.detects_loss(f, self.s_rtt);
        self.round_lossy |= lossy;
        self.loss_detected |= lossy;
        self.data_units_marked |= marked > Bytes::ZERO;
        if self.loss_detected || self.data_units_marked {
            self.last_congestion_detected = Some(f.now);
        }
        let scl = self.distance_from_inflexion();
        if let Some(reason) = self.congestion(f.now) {
            self.reduce(f.now, reason, scl);
        }
        // bytes_newly_acked includes lost packets, since later ones have passed them.
        let newly_acked = f.acked_bytes + f.lost_bytes;
        self.increase(f.now, newly_acked.saturating_sub(marked).as_f64(), scl);
        self.update_rate(f.now);
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.round_lossy = true;
        self.last_congestion_detected = Some(rto.now);
        self.reduce(rto.now, Reason::Loss, 1.0);
        if !self.s_rtt.is_zero() {
            self.update_rate(rto.now);
        }
    }

    /// "Send Window Calculation".
    fn control(&self) -> Control {
        let send_wnd = (self.ref_wnd * REF_WND_OVERHEAD).max(self.mss);
        Control {
            target_bitrate: Some(Rate::from_bps_f64(self.target_bitrate)),
            ..Control::paced(Bytes::from_f64(send_wnd), self.pacing_rate)
        }
    }

    fn stamp(&self) -> Stamp {
        Stamp {
            ecn: self.ecn,
            ..Stamp::default()
        }
    }

    fn owns_recovery(&self) -> bool {
        true
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.value("ref_wnd_packets", self.ref_wnd / self.mss);
        probe.value("target_bitrate_mbps", self.target_bitrate / 1e6);
        probe.value("qdelay_ms", self.qdelay.latest * 1e3);
        probe.value("qdelay_avg_ms", self.qdelay.average * 1e3);
        probe.value("qdelay_target_ms", self.target.value * 1e3);
        probe.value("l4s_alpha", self.marks.alpha);
    }
}
