//! BBR v1 (draft-cardwell-iccrg-bbr-congestion-control-00): sends at the bottleneck's bandwidth
//! with two bandwidth-delay products in flight, and keeps measuring both.
//!
//! Section numbers are the draft's. Four things follow Linux's `tcp_bbr.c` instead: pacing 1%
//! below the estimate so that queues drain, a new initial pacing rate at the first RTT sample,
//! an allowance for aggregated acknowledgements (`aggregation`), and the detection of policers
//! (`policer`).

mod aggregation;
mod policer;
mod probe_rtt;
mod recovery;
mod tuning;

#[cfg(test)]
mod tests;

pub use tuning::TUNABLES;

use aggregation::Aggregation;
use policer::{Policer, Seen};

use crate::max_filter::MaxFilter;
use crate::{
    Bytes, CongestionControl, Control, Duration, Family, Feedback, Kind, Need, Param, Probe, Rate,
    RateSample, Recovery, RoundCounter, Rto, Scheme, Sent, Setup, Stream, Tag, Time, Values,
};

const BTLBW_WINDOW: Param = Param {
    name: "btlbw_window",
    help: "rounds over which the largest delivery rate is taken",
    kind: Kind::Count {
        default: 10,
        min: 1,
        max: 1000,
    },
};
const RTPROP_WINDOW: Param = Param {
    name: "rtprop_window",
    help: "time over which the minimum RTT is taken",
    kind: Kind::Time {
        default: Duration::from_secs(10),
        min: Duration::from_millis(100),
        max: Duration::from_secs(600),
    },
};
const POLICER: Param = Param {
    name: "policer",
    help: "take heavy loss at a steady rate for a policer, and keep that rate for 48 rounds",
    kind: Kind::Choice(&["on", "off"]),
};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "bbr",
    family: Family::Model,
    summary: "paces at the measured bottleneck bandwidth, two BDP in flight",
    source: "draft-cardwell-iccrg-bbr-congestion-control-00",
    deviations: &[
        "Paces 1% below the estimate, as Linux, so that queues drain.",
        "Sets the initial pacing rate again at the first RTT sample, as Linux does, because no handshake measures an RTT.",
        "Adds aggregated acknowledgements to the window, as Linux since 5.1; otherwise links that aggregate would starve.",
        "Detects policers, as Linux does, and does not probe above their rate. `policer=off` turns this off.",
        "Searches for the full pipe again after a timeout, as Linux does.",
    ],
    needs: &[Need::RateSample, Need::Pacing, Need::PerSend],
    params: &[BTLBW_WINDOW, RTPROP_WINDOW, POLICER],
    build: |setup, values| Box::new(Bbr::new(setup, values)),
    receiver: None,
    router: None,
};

/// 2/ln 2: the smallest gain that doubles the sending rate each round (§4.3.2.1).
const HIGH_GAIN: f64 = 2.885;
/// ProbeBW's pacing gains. Each phase lasts an RTprop (§4.3.4.3).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const PROBE_BW_CWND_GAIN: f64 = 2.0;
/// The pacing rate as a share of the estimate, as in Linux.
const PACING_MARGIN: f64 = 0.99;
/// Startup continues while the bandwidth grows by this factor in three rounds (§4.3.2.2).
const FULL_PIPE_GROWTH: f64 = 1.25;
const FULL_PIPE_ROUNDS: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The state of one BBR flow.
#[derive(Debug)]
pub struct Bbr {
    mss: Bytes,
    initial_cwnd: Bytes,
    random: Stream,

    state: State,
    pacing_gain: f64,
    cwnd_gain: f64,
    pacing_rate: Rate,
    send_quantum: Bytes,
    cwnd: Bytes,

    rounds: RoundCounter,
    round_start: bool,
    btlbw: MaxFilter<Rate>,
    rtprop: Duration,
    rtprop_window: Duration,
    rtprop_stamp: Time,
    aggregation: Aggregation,
    policer: Option<Policer>,

    full_bw: Rate,
    full_bw_count: u32,
    filled_pipe: bool,

    cycle_index: usize,
    cycle_stamp: Time,

    probe_rtt_done: Option<Time>,
    probe_rtt_round_done: bool,
    /// The counts of delivered bytes between which packets were sent in ProbeRTT.
    probe_rtt_span: (Bytes, Bytes),

    recovery: Recovery,
    packet_conservation: bool,
    prior_cwnd: Bytes,

    idle_restart: bool,
}

impl Bbr {
    /// A flow at its initial window, in Startup.
    pub fn new(setup: &Setup, values: &Values) -> Bbr {
        let mut bbr = Bbr {
            mss: setup.mss,
            initial_cwnd: setup.initial_cwnd,
            random: setup.stream("bbr"),
            state: State::Startup,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            pacing_rate: Rate::ZERO,
            send_quantum: setup.mss,
            cwnd: setup.initial_cwnd,
            rounds: RoundCounter::default(),
            round_start: false,
            btlbw: MaxFilter::new(values.count(&BTLBW_WINDOW)),
            rtprop: Duration::MAX,
            rtprop_window: values.time(&RTPROP_WINDOW),
            rtprop_stamp: setup.start,
            aggregation: Aggregation::new(setup.mss),
            policer: (values.choice(&POLICER) == "on").then(Policer::default),
            full_bw: Rate::ZERO,
            full_bw_count: 0,
            filled_pipe: false,
            cycle_index: 0,
            cycle_stamp: setup.start,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            probe_rtt_span: (Bytes::MAX, Bytes::ZERO),
            recovery: Recovery::Open,
            packet_conservation: false,
            prior_cwnd: Bytes::ZERO,
            idle_restart: false,
        };
        bbr.init_pacing_rate(Duration::from_millis(1));
        bbr
    }

    fn enter(&mut self, state: State, pacing_gain: f64, cwnd_gain: f64) {
        (self.state, self.pacing_gain, self.cwnd_gain) = (state, pacing_gain, cwnd_gain);
    }

    fn min_pipe_cwnd(&self) -> Bytes {
        self.mss * 4
    }

    /// The bandwidth for sending: a policer's rate, or the largest measured one.
    fn bandwidth(&self) -> Rate {
        let policed = self.policer.and_then(|p| p.rate());
        policed.unwrap_or(self.btlbw.max())
    }

    /// BBRInflight (§4.2.3.2): `gain` BDP, plus an allowance for offloading.
    fn inflight(&self, bandwidth: Rate, gain: f64) -> Bytes {
        if self.rtprop == Duration::MAX {
            return self.initial_cwnd;
        }
        let bdp = bandwidth.as_bytes_per_sec() * self.rtprop.as_secs_f64();
        Bytes::from_f64(gain * bdp) + self.send_quantum * 3
    }

    // The model of the path (§4.1).

    fn update_btlbw(&mut self, sample: Option<RateSample>) {
        let Some(sample) = sample else { return };
        let rate = sample.delivery_rate();
        if !sample.app_limited || rate >= self.btlbw.max() {
            self.btlbw.update(self.rounds.count(), rate);
        }
    }

    /// Updates RTprop. Returns whether the estimate had expired.
    fn update_rtprop(&mut self, f: &Feedback<'_>) -> bool {
        let known = self.rtprop != Duration::MAX;
        let expired = known && f.now > self.rtprop_stamp + self.rtprop_window;
        if let Some(rtt) = f.rtt
            && (rtt <= self.rtprop || expired)
        {
            (self.rtprop, self.rtprop_stamp) = (rtt, f.now);
        }
        expired
    }

    /// The rate sample, if it can be used: it must cover at least a round trip. It counts as
    /// app-limited if its packet was sent while ProbeRTT limited the sender (§4.3.5).
    fn believable(&self, f: &Feedback<'_>) -> Option<RateSample> {
        let mut sample = f.rate?;
        if sample.interval.is_zero()
            || sample.interval < f.rtt_stats.min
            || sample.delivered == Bytes::ZERO
        {
            return None;
        }
        let (from, to) = self.probe_rtt_span;
        sample.app_limited |= (from..=to).contains(&sample.prior_delivered);
        Some(sample)
    }

    fn update_policer(&mut self, seen: Seen) {
        let Some(policer) = &mut self.policer else {
            return;
        };
        let before = policer.rate();
        policer.update(&seen);
        let after = policer.rate();
        if before == after || self.state != State::ProbeBw {
            return;
        }
        match after {
            Some(_) => self.pacing_gain = self.cycle_gain(),
            None => self.enter_probe_bw(seen.now),
        }
    }

    // The state machine (§4.3).

    fn check_full_pipe(&mut self, sample: Option<RateSample>) {
        let limited = sample.is_none_or(|s| s.app_limited);
        if self.filled_pipe || !self.round_start || limited {
            return;
        }
        if self.btlbw.max() >= self.full_bw.mul_f64(FULL_PIPE_GROWTH) {
            self.full_bw = self.btlbw.max();
            self.full_bw_count = 0;
            return;
        }
        self.full_bw_count += 1;
        self.filled_pipe = self.full_bw_count >= FULL_PIPE_ROUNDS;
    }

    fn check_drain(&mut self, f: &Feedback<'_>) {
        if self.state == State::Startup && self.filled_pipe {
            self.enter(State::Drain, 1.0 / HIGH_GAIN, HIGH_GAIN);
        }
        if self.state == State::Drain && f.in_flight <= self.inflight(self.btlbw.max(), 1.0) {
            self.enter_probe_bw(f.now);
        }
    }

    /// Starts in any phase but the draining one, so that flows do not cycle in step.
    fn enter_probe_bw(&mut self, now: Time) {
        self.enter(State::ProbeBw, 1.0, PROBE_BW_CWND_GAIN);
        self.cycle_index = CYCLE.len() - 1 - self.random.below(CYCLE.len() as u64 - 1) as usize;
        self.advance_cycle_phase(now);
    }

    fn advance_cycle_phase(&mut self, now: Time) {
        self.cycle_stamp = now;
        self.cycle_index = (self.cycle_index + 1) % CYCLE.len();
        self.pacing_gain = self.cycle_gain();
    }

    /// The pacing gain. BBR does not probe above a policer's rate.
    fn cycle_gain(&self) -> f64 {
        if self.policer.is_some_and(|p| p.rate().is_some()) {
            1.0
        } else {
            CYCLE[self.cycle_index]
        }
    }

    fn check_cycle_phase(&mut self, f: &Feedback<'_>) {
        if self.state != State::ProbeBw {
            return;
        }
        let elapsed = f.now.since(self.cycle_stamp) > self.rtprop;
        let over = if self.pacing_gain > 1.0 {
            let probed = f.prior_in_flight >= self.inflight(self.btlbw.max(), self.pacing_gain);
            elapsed && (f.lost_bytes > Bytes::ZERO || probed)
        } else if self.pacing_gain < 1.0 {
            elapsed || f.prior_in_flight <= self.inflight(self.btlbw.max(), 1.0)
        } else {
            elapsed
        };
        if over {
            self.advance_cycle_phase(f.now);
        }
    }

    // The control parameters (§4.2).

    fn init_pacing_rate(&mut self, rtt: Duration) {
        let rate = Rate::from_bytes_per(self.cwnd, rtt);
        self.pacing_rate = rate.mul_f64(HIGH_GAIN);
    }

    /// Until the pipe has been full once, the rate only rises.
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = self.bandwidth().mul_f64(gain * PACING_MARGIN);
        if self.filled_pipe || rate > self.pacing_rate {
            // A rate of zero could never rise again.
            self.pacing_rate = rate.max(Rate::from_bps(1));
        }
    }

    fn set_send_quantum(&mut self) {
        self.send_quantum = if self.pacing_rate < Rate::from_bps(1_200_000) {
            self.mss
        } else if self.pacing_rate < Rate::from_bps(24_000_000) {
            self.mss * 2
        } else {
            self.pacing_rate
                .bytes_in(Duration::from_millis(1))
                .min(Bytes::new(64 * 1024))
        };
    }

    fn set_cwnd(&mut self, f: &Feedback<'_>) {
        if f.lost_bytes > Bytes::ZERO {
            self.cwnd = self.cwnd.saturating_sub(f.lost_bytes).max(self.mss);
        }
        if self.packet_conservation {
            self.cwnd = self.cwnd.max(f.in_flight + f.acked_bytes);
        } else if f.acked_bytes > Bytes::ZERO {
            self.regrow_cwnd(f);
        }
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.min_pipe_cwnd());
        }
    }

    fn regrow_cwnd(&mut self, f: &Feedback<'_>) {
        let bandwidth = self.bandwidth();
        let target = self.inflight(bandwidth, self.cwnd_gain);
        let grown = self.cwnd + f.acked_bytes;
        if self.filled_pipe {
            self.cwnd = grown.min(target + self.aggregation.allowance(bandwidth));
        } else if self.cwnd < target || f.counters.delivered < self.initial_cwnd {
            self.cwnd = grown;
        }
        self.cwnd = self.cwnd.max(self.min_pipe_cwnd());
    }
}

impl CongestionControl for Bbr {
    /// Restarting from idle (§4.3.4.4): the flow paces at the estimated rate, without the cycle's
    /// gain.
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        if sent.in_flight == sent.size && sent.app_limited {
            self.idle_restart = true;
            self.aggregation.restart(sent.now);
            if self.state == State::ProbeBw {
                self.set_pacing_rate(1.0);
            }
        }
        Tag::NONE
    }

    fn on_feedback(&mut self, f: &Feedback<'_>) {
        if self.rtprop == Duration::MAX
            && let Some(rtt) = f.rtt
            && !rtt.is_zero()
        {
            self.init_pacing_rate(rtt);
        }
        self.round_start = self.rounds.on_feedback(f);
        self.follow_recovery(f);

        let sample = self.believable(f);
        self.update_policer(Seen {
            now: f.now,
            acked: f.acked_bytes,
            lost: f.lost_bytes,
            round_start: self.round_start,
            app_limited: sample.is_some_and(|s| s.app_limited),
            probing_bw: self.state == State::ProbeBw,
        });
        self.update_btlbw(sample);
        let bandwidth = self.bandwidth();
        self.aggregation
            .update(f, bandwidth, self.cwnd, self.round_start);
        self.check_cycle_phase(f);
        self.check_full_pipe(sample);
        self.check_drain(f);
        let expired = self.update_rtprop(f);
        self.check_probe_rtt(f, expired);

        self.set_pacing_rate(self.pacing_gain);
        self.set_send_quantum();
        self.set_cwnd(f);
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.follow_rto();
        self.update_policer(Seen {
            now: rto.now,
            acked: Bytes::ZERO,
            lost: rto.prior_in_flight,
            round_start: true,
            app_limited: false,
            probing_bw: self.state == State::ProbeBw,
        });
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
        probe.value("state", f64::from(self.state as u8));
        probe.value("pacing_gain", self.pacing_gain);
        probe.value("btlbw_mbps", self.btlbw.max().as_mbps());
        if let Some(rate) = self.policer.and_then(|p| p.rate()) {
            probe.value("policer_mbps", rate.as_mbps());
        }
        if self.rtprop != Duration::MAX {
            probe.value("rtprop_ms", self.rtprop.as_millis_f64());
        }
    }
}
