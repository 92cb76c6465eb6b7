//! BBR v3 (draft-ietf-ccwg-bbr, the working copy of August 2026 at commit 4ce5e87): BBR's model of
//! bandwidth and delay, with bounds on the volume in flight that losses set.
//!
//! Section numbers are the draft's, and so are names: `C.inflight` is `self.c.inflight`, `RS.lost`
//! is `self.rs.lost`, `BBR.bw_shortterm` is `self.bw_shortterm`, `CheckDrainDone` is
//! `check_drain_done`. Infinity is the largest value of a unit. Each part of the algorithm is a
//! module: the model of the path (`model`), how loss changes it (`loss`), each state (`startup`,
//! `probe_bw`, `probe_rtt`) and what the sender may do (`output`).

mod loss;
mod model;
mod output;
mod probe_bw;
mod probe_rtt;
mod startup;

#[cfg(test)]
mod tests;

use loss::Undo;
use probe_bw::Cycle;
use startup::FullPipe;

use crate::max_filter::MaxFilter;
use crate::{
    Bytes, CongestionControl, Control, Duration, Family, Feedback, Kind, Need, Param, Probe, Rate,
    Recovery, RoundCounter, Rto, Scheme, Sent, Setup, Stream, Tag, Time, Values,
};

const LOSS_THRESHOLD: Param = Param {
    name: "loss_threshold",
    help: "share of a round's packets whose loss ends a probe for bandwidth (LossThresh)",
    kind: Kind::Number {
        default: 0.02,
        min: 0.001,
        max: 0.5,
    },
};
const BETA: Param = Param {
    name: "beta",
    help: "smallest share of the short-term bounds that remains after a round with loss (Beta)",
    kind: Kind::Number {
        default: 0.7,
        min: 0.1,
        max: 0.99,
    },
};
const HEADROOM: Param = Param {
    name: "headroom",
    help: "share of the long-term bound that is left to others while cruising (Headroom)",
    kind: Kind::Number {
        default: 0.15,
        min: 0.0,
        max: 0.9,
    },
};
const PROBE_WAIT: Param = Param {
    name: "probe_wait",
    help: "time between probes for bandwidth; up to half as much again is added at random",
    kind: Kind::Time {
        default: Duration::from_secs(2),
        min: Duration::from_millis(100),
        max: Duration::from_secs(600),
    },
};
const PROBE_RTT_INTERVAL: Param = Param {
    name: "probe_rtt_interval",
    help: "time without a new minimum RTT after which BBR probes for it (ProbeRTTInterval)",
    kind: Kind::Time {
        default: Duration::from_secs(5),
        min: Duration::from_millis(500),
        max: Duration::from_secs(600),
    },
};
const MIN_RTT_WINDOW: Param = Param {
    name: "min_rtt_window",
    help: "time over which the minimum RTT is taken (MinRTTFilterLen)",
    kind: Kind::Time {
        default: Duration::from_secs(10),
        min: Duration::from_millis(500),
        max: Duration::from_secs(600),
    },
};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "bbr3",
    family: Family::Model,
    summary: "BBR with bounds learned from loss: probes every 2-3 s, backs off above 2% of loss",
    source: "draft-ietf-ccwg-bbr at 4ce5e87 (August 2026)",
    deviations: &[
        "Sets the initial pacing rate again at the first RTT sample, as Linux does, because no handshake measures an RTT.",
        "Saves the state for an undo only once, before the losses that begin a recovery. NoteLoss's second save would keep the state after them.",
        "Takes an acknowledgement without a reliable rate sample for application-limited, so it cannot end Startup.",
    ],
    needs: &[
        Need::PerPacket,
        Need::RateSample,
        Need::Pacing,
        Need::PerSend,
    ],
    params: &[
        LOSS_THRESHOLD,
        BETA,
        HEADROOM,
        PROBE_WAIT,
        PROBE_RTT_INTERVAL,
        MIN_RTT_WINDOW,
    ],
    build: |setup, values| Box::new(Bbr3::new(setup, values)),
    receiver: None,
    router: None,
};

/// BBR.MaxBwFilterLen: this ProbeBW cycle and the one before (§2.11).
const MAX_BW_FILTER_LEN: u64 = 2;

/// BBR.state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBwDown,
    ProbeBwCruise,
    ProbeBwRefill,
    ProbeBwUp,
    ProbeRtt,
}

impl State {
    /// pacing_gain and cwnd_gain (§5.6.1).
    const fn gains(self) -> (f64, f64) {
        match self {
            State::Startup => (2.77, 2.0),
            State::Drain => (0.5, 2.0),
            State::ProbeBwDown => (0.9, 2.0),
            State::ProbeBwCruise | State::ProbeBwRefill => (1.0, 2.0),
            State::ProbeBwUp => (1.25, 2.25),
            State::ProbeRtt => (1.0, 0.5),
        }
    }

    /// IsInAProbeBWState (§5.3.3.9).
    const fn is_probe_bw(self) -> bool {
        matches!(
            self,
            State::ProbeBwDown | State::ProbeBwCruise | State::ProbeBwRefill | State::ProbeBwUp
        )
    }

    /// IsProbingBW (§5.3.3.9).
    const fn is_probing_bw(self) -> bool {
        matches!(
            self,
            State::Startup | State::ProbeBwRefill | State::ProbeBwUp
        )
    }
}

/// C: the state of the connection (§2.2).
#[derive(Debug, Default)]
struct Connection {
    now: Time,
    next_number: u64,
    inflight: Bytes,
    delivered: Bytes,
    lost: Bytes,
    recovery: Recovery,
    /// Was the window full at some time in this round, and in the last?
    cwnd_limited: [bool; 2],
}

impl Connection {
    fn is_cwnd_limited(&self) -> bool {
        self.cwnd_limited[0] || self.cwnd_limited[1]
    }

    fn in_loss_recovery(&self) -> bool {
        matches!(self.recovery, Recovery::Recovery | Recovery::Loss)
    }
}

/// RS: the rate sample of the newest packet that was just acknowledged (§2.3); zero without a
/// reliable sample.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    delivery_rate: Rate,
    delivered: Bytes,
    tx_in_flight: Bytes,
    lost: Bytes,
    newly_acked: Bytes,
    is_app_limited: bool,
}

/// The state of one BBR v3 flow.
#[derive(Debug)]
pub struct Bbr3 {
    mss: Bytes,
    initial_cwnd: Bytes,
    random: Stream,
    loss_thresh: f64,
    beta: f64,
    headroom: f64,
    probe_wait: Duration,
    probe_rtt_interval: Duration,
    min_rtt_filter_len: Duration,

    c: Connection,
    rs: Sample,
    state: State,

    // What the sender may do (§2.4).
    cwnd: Bytes,
    prior_cwnd: Bytes,
    pacing_rate: Rate,
    send_quantum: Bytes,

    // The model of the path (§2.9).
    rounds: RoundCounter,
    round_start: bool,
    max_bw_filter: MaxFilter<Rate>,
    max_bw: Rate,
    bw: Rate,
    bw_shortterm: Rate,
    inflight_shortterm: Bytes,
    inflight_longterm: Bytes,
    extra_acked_filter: MaxFilter<Bytes>,
    extra_acked_interval_start: Time,
    extra_acked_delivered: Bytes,

    // The last round of deliveries and losses (§2.10).
    loss_round: RoundCounter,
    loss_round_start: bool,
    is_loss_in_round: bool,
    bw_latest: Rate,
    inflight_latest: Bytes,
    /// The number of ranges of packets that were lost in the round, and the end of the last one.
    lost_ranges: u32,
    lost_range_end: u64,
    undo: Undo,

    full_pipe: FullPipe,
    drain_start_round: u64,
    cycle: Cycle,

    min_rtt: Duration,
    min_rtt_stamp: Time,
    probe_rtt_min_delay: Duration,
    probe_rtt_min_stamp: Time,
    probe_rtt_expired: bool,
    probe_rtt_done_stamp: Option<Time>,
    probe_rtt_round_done: bool,
    /// The counts of delivered bytes between which packets were sent in ProbeRTT.
    probe_rtt_span: (Bytes, Bytes),
    idle_restart: bool,
}

impl Bbr3 {
    /// OnInit (§5.2.1): a flow at its initial window, in Startup.
    pub fn new(setup: &Setup, values: &Values) -> Bbr3 {
        let mut bbr = Bbr3 {
            mss: setup.mss,
            initial_cwnd: setup.initial_cwnd,
            random: setup.stream("bbr3"),
            loss_thresh: values.number(&LOSS_THRESHOLD),
            beta: values.number(&BETA),
            headroom: values.number(&HEADROOM),
            probe_wait: values.time(&PROBE_WAIT),
            probe_rtt_interval: values.time(&PROBE_RTT_INTERVAL),
            min_rtt_filter_len: values.time(&MIN_RTT_WINDOW),
            c: Connection::default(),
            rs: Sample::default(),
            state: State::Startup,
            cwnd: setup.initial_cwnd,
            prior_cwnd: Bytes::ZERO,
            pacing_rate: Rate::ZERO,
            send_quantum: setup.mss * 2,
            rounds: RoundCounter::default(),
            round_start: false,
            max_bw_filter: MaxFilter::new(MAX_BW_FILTER_LEN),
            max_bw: Rate::ZERO,
            bw: Rate::ZERO,
            bw_shortterm: Rate::MAX,
            inflight_shortterm: Bytes::MAX,
            inflight_longterm: Bytes::MAX,
            extra_acked_filter: MaxFilter::new(1),
            extra_acked_interval_start: setup.start,
            extra_acked_delivered: Bytes::ZERO,
            loss_round: RoundCounter::default(),
            loss_round_start: false,
            is_loss_in_round: false,
            bw_latest: Rate::ZERO,
            inflight_latest: Bytes::ZERO,
            lost_ranges: 0,
            lost_range_end: u64::MAX,
            undo: Undo::default(),
            full_pipe: FullPipe::default(),
            drain_start_round: 0,
            cycle: Cycle::new(setup.start),
            min_rtt: Duration::MAX,
            min_rtt_stamp: setup.start,
            probe_rtt_min_delay: Duration::MAX,
            probe_rtt_min_stamp: setup.start,
            probe_rtt_expired: false,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            probe_rtt_span: (Bytes::MAX, Bytes::ZERO),
            idle_restart: false,
        };
        bbr.init_pacing_rate(Duration::from_millis(1));
        bbr
    }

    /// StartRound (§5.5.1).
    fn start_round(&mut self) {
        self.rounds.restart(self.c.next_number);
    }

    /// UpdateModelAndState (§5.2.3).
    fn update_model_and_state(&mut self, f: &Feedback<'_>) {
        self.generate_rate_sample(f);
        self.update_latest_delivery_signals(f);
        self.update_congestion_signals(f);
        self.update_ack_aggregation();
        self.check_full_bw_reached();
        self.check_startup_done();
        self.check_drain_done();
        self.update_probe_bw_cycle_phase();
        self.update_min_rtt(f.rtt);
        self.check_probe_rtt();
        self.advance_latest_delivery_signals();
        self.bound_bw_for_model();
    }
}

impl CongestionControl for Bbr3 {
    /// HandleRestartFromIdle (§5.4.1). The packet's tag is P.is_app_limited.
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        if sent.in_flight == sent.size && sent.app_limited {
            (self.c.now, self.c.next_number) = (sent.now, sent.number);
            self.idle_restart = true;
            self.extra_acked_interval_start = sent.now;
            if self.state.is_probe_bw() {
                self.set_pacing_rate_with_gain(1.0);
            } else if self.state == State::ProbeRtt {
                self.check_probe_rtt_done();
            }
        }
        Tag(u64::from(sent.app_limited))
    }

    /// UpdateOnACK (§5.2.3), after the losses that the acknowledgement reports (§5.2.4).
    fn on_feedback(&mut self, f: &Feedback<'_>) {
        self.c.now = f.now;
        self.c.next_number = f.next_number;
        self.c.inflight = f.in_flight;
        self.c.delivered = f.counters.delivered;
        self.c.cwnd_limited[0] |= f.cwnd_limited;
        if self.min_rtt == Duration::MAX
            && let Some(rtt) = f.rtt
            && !rtt.is_zero()
        {
            self.init_pacing_rate(rtt);
        }
        self.follow_recovery(f.recovery);
        self.c.lost = f.counters.lost.saturating_sub(f.lost_bytes);
        for packet in f.lost {
            self.handle_lost_packet(packet);
        }
        if f.undo {
            self.handle_spurious_loss_detection();
        }
        if f.acked_bytes > Bytes::ZERO {
            self.update_model_and_state(f);
            self.set_pacing_rate();
            self.set_send_quantum();
            self.set_cwnd();
        }
    }

    /// OnEnterRTO (§5.6.4.4).
    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.c.now = rto.now;
        self.c.next_number = rto.next_number;
        self.c.inflight = Bytes::ZERO;
        self.follow_recovery(Recovery::Loss);
        for packet in rto.lost {
            self.handle_lost_packet(packet);
        }
        self.cwnd = self.mss;
    }

    fn control(&self) -> Control {
        Control {
            pacing_rate: Some(self.pacing_rate),
            send_quantum: self.send_quantum,
            ..Control::window(self.cwnd)
        }
    }

    fn owns_recovery(&self) -> bool {
        true
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let packets = |bytes: Bytes| bytes.as_f64() / self.mss.as_f64();
        probe.value("state", f64::from(self.state as u8));
        probe.value("pacing_gain", self.state.gains().0);
        probe.value("max_bw_mbps", self.max_bw.as_mbps());
        probe.value("bw_mbps", self.bw.as_mbps());
        probe.value("extra_acked_packets", packets(self.extra_acked()));
        if self.inflight_longterm != Bytes::MAX {
            probe.value("inflight_longterm_packets", packets(self.inflight_longterm));
        }
        if self.inflight_shortterm != Bytes::MAX {
            probe.value(
                "inflight_shortterm_packets",
                packets(self.inflight_shortterm),
            );
        }
        if self.min_rtt != Duration::MAX {
            probe.value("min_rtt_ms", self.min_rtt.as_millis_f64());
        }
    }
}
