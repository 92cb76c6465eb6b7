//! ProbeBW: it sends faster, then slower, now and then, and otherwise as fast as the network
//! delivers (§5.3.3).

use super::{Bbr3, State};
use crate::{Bytes, Duration, Time};

/// The most rounds between two probes, so that a competing Reno flow keeps up (§5.3.3.8.3).
const MAX_RENO_ROUNDS: u64 = 63;
/// How often the slope of inflight_longterm may double (§5.3.3.9).
const MAX_UP_ROUNDS: u32 = 30;

/// What acknowledgements show during a probe for bandwidth (§2.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The state of ProbeBW's cycle (§2.14).
#[derive(Debug)]
pub(super) struct Cycle {
    /// BBR.cycle_count: the time unit of the max_bw filter (§5.5.6).
    pub(super) count: u64,
    /// BBR.cycle_stamp.
    stamp: Time,
    pub(super) ack_phase: AckPhase,
    pub(super) is_bw_probe_sample: bool,
    pub(super) bw_probe_wait: Duration,
    pub(super) rounds_since_probe_up: u64,
    bw_probe_up_rounds: u32,
    bw_probe_up_acked: Bytes,
    probe_up_acked_per_inc: Bytes,
    pub(super) prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
}

impl Cycle {
    pub(super) fn new(start: Time) -> Cycle {
        Cycle {
            count: 0,
            stamp: start,
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            bw_probe_wait: Duration::ZERO,
            rounds_since_probe_up: 0,
            bw_probe_up_rounds: 0,
            bw_probe_up_acked: Bytes::ZERO,
            probe_up_acked_per_inc: Bytes::MAX,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
        }
    }
}

// Entering each state (§5.3.3.9).
impl Bbr3 {
    /// StartProbeBW_DOWN.
    pub(super) fn start_probe_bw_down(&mut self) {
        self.reset_congestion_signals();
        self.cycle.probe_up_acked_per_inc = Bytes::MAX; // inflight_longterm does not grow
        self.pick_probe_wait();
        self.cycle.stamp = self.c.now;
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = State::ProbeBwDown;
    }

    /// StartProbeBW_CRUISE.
    pub(super) fn start_probe_bw_cruise(&mut self) {
        self.state = State::ProbeBwCruise;
    }

    /// StartProbeBW_REFILL.
    pub(super) fn start_probe_bw_refill(&mut self) {
        self.reset_short_term_model();
        self.cycle.bw_probe_up_rounds = 0;
        self.cycle.bw_probe_up_acked = Bytes::ZERO;
        self.cycle.prev_probe_precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::ProbeBwRefill;
    }

    /// StartProbeBW_UP.
    fn start_probe_bw_up(&mut self) {
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.full_pipe.reset();
        self.full_pipe.bw = self.rs.delivery_rate;
        self.state = State::ProbeBwUp;
        self.raise_inflight_longterm_slope();
    }
}

// The transitions (§5.3.3.9).
impl Bbr3 {
    /// UpdateProbeBWCyclePhase.
    pub(super) fn update_probe_bw_cycle_phase(&mut self) {
        if !self.full_pipe.reached || self.adapt_long_term_model() {
            return;
        }
        let is_time_to_go_down = self.state == State::ProbeBwUp && self.is_time_to_go_down();
        match self.state {
            State::ProbeBwDown | State::ProbeBwCruise if self.is_time_to_probe_bw() => {
                self.start_probe_bw_refill();
            }
            State::ProbeBwDown if self.is_time_to_cruise() => self.start_probe_bw_cruise(),
            State::ProbeBwRefill if self.round_start => {
                self.cycle.is_bw_probe_sample = true;
                self.start_probe_bw_up();
            }
            State::ProbeBwUp if is_time_to_go_down => {
                self.cycle.prev_probe_too_high = false; // no high loss, yet
                self.start_probe_bw_down();
            }
            _ => {}
        }
    }

    /// IsTimeToCruise: the flow leaves headroom for others, and no queue.
    pub(super) fn is_time_to_cruise(&self) -> bool {
        self.c.inflight <= self.inflight_with_headroom()
            && self.c.inflight <= self.inflight(self.max_bw, 1.0)
    }

    /// IsTimeToGoDown.
    fn is_time_to_go_down(&mut self) -> bool {
        if self.cycle.prev_probe_too_high && self.c.inflight >= self.inflight_longterm {
            self.cycle.prev_probe_precautionary = true;
            return true;
        }
        if self.is_limited_by_inflight_longterm() {
            // The bound limits the bandwidth, not the path, so this does not show a full pipe.
            self.full_pipe.reset();
            self.full_pipe.bw = self.rs.delivery_rate;
            return false;
        }
        self.full_pipe.now
    }

    fn is_limited_by_inflight_longterm(&self) -> bool {
        self.c.is_cwnd_limited() && self.cwnd >= self.inflight_longterm
    }

    /// InflightWithHeadroom.
    pub(super) fn inflight_with_headroom(&self) -> Bytes {
        if self.inflight_longterm == Bytes::MAX {
            return Bytes::MAX;
        }
        let headroom = self.inflight_longterm.mul_f64(self.headroom).max(self.mss);
        self.inflight_longterm
            .saturating_sub(headroom)
            .max(self.min_pipe_cwnd())
    }

    /// TargetInflight (§5.3.3.8.3): the BDP, unless congestion has reduced the window.
    pub(super) fn target_inflight(&self) -> Bytes {
        self.bdp_multiple(self.bw, 1.0).min(self.cwnd)
    }

    /// IsTimeToProbeBW (§5.3.3.8.3): by time, or when a Reno flow would have had a loss.
    pub(super) fn is_time_to_probe_bw(&self) -> bool {
        let reno_rounds = self.target_inflight().get() / self.mss.get();
        self.c.now > self.cycle.stamp + self.cycle.bw_probe_wait
            || self.cycle.rounds_since_probe_up >= reno_rounds.min(MAX_RENO_ROUNDS)
    }

    /// PickProbeWait (§5.3.3.8.3).
    fn pick_probe_wait(&mut self) {
        self.cycle.rounds_since_probe_up = self.random.below(2);
        self.cycle.bw_probe_wait = self.probe_wait.mul_f64(1.0 + 0.5 * self.random.uniform());
    }
}

// The long-term bound (§5.3.3.9).
impl Bbr3 {
    /// AdaptLongTermModel. Returns true if it changed the state.
    fn adapt_long_term_model(&mut self) -> bool {
        if self.round_start && self.cycle.ack_phase == AckPhase::ProbeStarting {
            self.cycle.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.round_start && self.cycle.ack_phase == AckPhase::ProbeStopping {
            self.cycle.is_bw_probe_sample = false;
            self.cycle.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() && !self.rs.is_app_limited {
                self.cycle.count += 1; // AdvanceMaxBwFilter (§5.5.6)
            }
            if self.state.is_probe_bw()
                && self.cycle.prev_probe_precautionary
                && !self.cycle.prev_probe_too_high
            {
                self.start_probe_bw_refill();
                return true;
            }
        }
        if self.inflight_longterm != Bytes::MAX
            && !self.is_inflight_too_high(self.rs.lost, self.rs.tx_in_flight)
        {
            self.inflight_longterm = self.inflight_longterm.max(self.rs.tx_in_flight);
            if self.state == State::ProbeBwUp {
                self.probe_inflight_longterm_upward();
            }
        }
        false
    }

    /// RaiseInflightLongtermSlope: by 1, 2, 4, .. packets a round.
    pub(super) fn raise_inflight_longterm_slope(&mut self) {
        let growth_this_round = 1 << self.cycle.bw_probe_up_rounds;
        self.cycle.bw_probe_up_rounds = (self.cycle.bw_probe_up_rounds + 1).min(MAX_UP_ROUNDS);
        self.cycle.probe_up_acked_per_inc = (self.cwnd / growth_this_round).max(self.mss);
    }

    /// ProbeInflightLongtermUpward.
    fn probe_inflight_longterm_upward(&mut self) {
        if !self.is_limited_by_inflight_longterm() {
            return;
        }
        let cycle = &mut self.cycle;
        cycle.bw_probe_up_acked += self.rs.newly_acked;
        let delta = cycle.bw_probe_up_acked.get() / cycle.probe_up_acked_per_inc.get();
        cycle.bw_probe_up_acked -= cycle.probe_up_acked_per_inc * delta;
        self.inflight_longterm = self.inflight_longterm.saturating_add(self.mss * delta);
        if self.round_start {
            self.raise_inflight_longterm_slope();
        }
    }
}
