//! What the sender may do: pacing rate, send quantum, congestion window (§5.6).

use super::{Bbr3, State};
use crate::{Bytes, Duration, Rate};

/// BBR.PacingMarginPercent: 1% below the estimate (§5.6.2).
const PACING_MARGIN: f64 = 0.99;
/// BBR.MinPipeCwnd, in packets (§5.6.4.3).
const MIN_PIPE_CWND: u64 = 4;
/// The allowance for offloading, in quanta (§5.5.8.1).
const OFFLOAD_BUDGET: u64 = 3;
/// The largest quantum (§5.6.3).
const MAX_QUANTUM: Bytes = Bytes::new(64 * 1024);

// Pacing (§5.6.2, §5.6.3).
impl Bbr3 {
    /// InitPacingRate.
    pub(super) fn init_pacing_rate(&mut self, srtt: Duration) {
        let nominal_bandwidth = Rate::from_bytes_per(self.initial_cwnd, srtt);
        self.pacing_rate = nominal_bandwidth.mul_f64(State::Startup.gains().0);
    }

    /// SetPacingRateWithGain: until the pipe has been full once, the rate only rises.
    pub(super) fn set_pacing_rate_with_gain(&mut self, gain: f64) {
        let rate = self.bw.mul_f64(gain * PACING_MARGIN);
        if self.full_pipe.reached || rate > self.pacing_rate {
            // A rate of zero could never rise again.
            self.pacing_rate = rate.max(Rate::from_bps(1));
        }
    }

    /// SetPacingRate.
    pub(super) fn set_pacing_rate(&mut self) {
        self.set_pacing_rate_with_gain(self.state.gains().0);
    }

    /// SetSendQuantum: the data of a millisecond.
    pub(super) fn set_send_quantum(&mut self) {
        self.send_quantum = self
            .pacing_rate
            .bytes_in(Duration::from_millis(1))
            .min(MAX_QUANTUM)
            .max(self.mss * 2);
    }
}

// The window (§5.6.4).
impl Bbr3 {
    pub(super) fn min_pipe_cwnd(&self) -> Bytes {
        self.mss * MIN_PIPE_CWND
    }

    /// BDPMultiple (§5.6.4.2).
    pub(super) fn bdp_multiple(&self, bw: Rate, gain: f64) -> Bytes {
        if self.min_rtt == Duration::MAX {
            return self.initial_cwnd;
        }
        Bytes::from_f64(gain * bw.as_bytes_per_sec() * self.min_rtt.as_secs_f64())
    }

    /// QuantizationBudget (§5.6.4.2).
    fn quantization_budget(&self, inflight_cap: Bytes) -> Bytes {
        let offload_budget = self.send_quantum * OFFLOAD_BUDGET;
        let cap = inflight_cap.max(offload_budget).max(self.min_pipe_cwnd());
        if self.state == State::ProbeBwUp {
            return cap + self.mss * 2;
        }
        cap
    }

    /// Inflight (§5.6.4.2).
    pub(super) fn inflight(&self, bw: Rate, gain: f64) -> Bytes {
        self.quantization_budget(self.bdp_multiple(bw, gain))
    }

    /// UpdateMaxInflight (§5.6.4.2).
    fn max_inflight(&self) -> Bytes {
        let cap = self.bdp_multiple(self.bw, self.state.gains().1);
        self.quantization_budget(cap + self.extra_acked())
    }

    /// SetCwnd (§5.6.4.6).
    pub(super) fn set_cwnd(&mut self) {
        let max_inflight = self.max_inflight();
        let grown = self.cwnd + self.rs.newly_acked;
        if self.full_pipe.reached {
            self.cwnd = grown.min(max_inflight);
        } else if self.cwnd < max_inflight || self.c.delivered < self.initial_cwnd {
            self.cwnd = grown;
        }
        self.cwnd = self.cwnd.max(self.min_pipe_cwnd());
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd()); // BoundCwndForProbeRTT
        }
        self.bound_cwnd_for_model();
    }

    /// ProbeRTTCwnd (§5.6.4.5).
    pub(super) fn probe_rtt_cwnd(&self) -> Bytes {
        let (_, gain) = State::ProbeRtt.gains();
        self.bdp_multiple(self.bw, gain).max(self.min_pipe_cwnd())
    }

    /// BoundCwndForModel (§5.6.4.7).
    fn bound_cwnd_for_model(&mut self) {
        let cap = match self.state {
            State::Startup | State::Drain => Bytes::MAX,
            State::ProbeBwDown | State::ProbeBwRefill | State::ProbeBwUp => self.inflight_longterm,
            State::ProbeBwCruise | State::ProbeRtt => self.inflight_with_headroom(),
        };
        let cap = cap.min(self.inflight_shortterm).max(self.min_pipe_cwnd());
        self.cwnd = self.cwnd.min(cap);
    }

    /// SaveCwnd (§5.6.4.4): the last window that neither recovery nor ProbeRTT has cut.
    pub(super) fn save_cwnd(&mut self) {
        let cut = self.c.in_loss_recovery() || self.state == State::ProbeRtt;
        self.prior_cwnd = if cut {
            self.prior_cwnd.max(self.cwnd)
        } else {
            self.cwnd
        };
    }

    /// RestoreCwnd (§5.6.4.4).
    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}
