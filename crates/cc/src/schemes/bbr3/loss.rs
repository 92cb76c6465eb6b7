//! How packet loss changes the model, and how that is undone (§5.5.10, §5.5.11).

use super::{Bbr3, State};
use crate::{Bytes, Lost, Rate, Recovery};

/// The state to restore if a loss turns out to be spurious (§2.15).
#[derive(Debug, Default)]
pub(super) struct Undo {
    state: Option<State>,
    bw_shortterm: Rate,
    inflight_shortterm: Bytes,
    inflight_longterm: Bytes,
}

impl Bbr3 {
    /// HandleLostPacket (§5.5.10.2).
    pub(super) fn handle_lost_packet(&mut self, p: &Lost) {
        self.c.lost = self.c.lost.saturating_add(p.size);
        self.note_loss(p.number);
        if !self.cycle.is_bw_probe_sample {
            return; // not a packet sent while probing for bandwidth
        }
        let lost = self.c.lost.saturating_sub(p.lost_before);
        if self.is_inflight_too_high(lost, p.tx_in_flight) {
            let is_app_limited = p.tag.0 != 0;
            self.handle_inflight_too_high(self.inflight_at_loss(p, lost), is_app_limited);
        }
    }

    /// NoteLoss (§5.5.10.2). Startup counts ranges of losses (§5.3.1.3).
    fn note_loss(&mut self, number: u64) {
        if !self.is_loss_in_round {
            self.loss_round.restart(self.c.next_number);
        }
        self.is_loss_in_round = true;
        if number != self.lost_range_end {
            self.lost_ranges = self.lost_ranges.saturating_add(1);
        }
        self.lost_range_end = number.wrapping_add(1);
    }

    /// IsInflightTooHigh (§5.5.10.2): `lost` bytes were lost since a packet was sent that had
    /// `tx_in_flight`.
    pub(super) fn is_inflight_too_high(&self, lost: Bytes, tx_in_flight: Bytes) -> bool {
        lost.as_f64() > tx_in_flight.as_f64() * self.loss_thresh
    }

    /// InflightAtLoss (§5.5.10.2): the volume in flight at which losses crossed LossThresh.
    fn inflight_at_loss(&self, p: &Lost, lost: Bytes) -> Bytes {
        let inflight_prev = p.tx_in_flight.as_f64() - p.size.as_f64();
        let lost_prev = lost.as_f64() - p.size.as_f64();
        let lost_prefix = (self.loss_thresh * inflight_prev - lost_prev) / (1.0 - self.loss_thresh);
        Bytes::from_f64(inflight_prev + lost_prefix)
    }

    /// HandleInflightTooHigh (§5.5.10.2), once a probe.
    fn handle_inflight_too_high(&mut self, tx_in_flight: Bytes, is_app_limited: bool) {
        self.cycle.prev_probe_too_high = true;
        self.cycle.is_bw_probe_sample = false;
        if !is_app_limited {
            let least = self.target_inflight().mul_f64(self.beta);
            self.inflight_longterm = tx_in_flight.max(least);
        }
        if self.state == State::ProbeBwUp {
            self.undo.state = Some(State::ProbeBwUp);
            self.start_probe_bw_down();
        }
    }

    /// AdaptLowerBoundsFromCongestion (§5.5.10.3): lowers the bounds to what was delivered, by at
    /// most Beta.
    pub(super) fn adapt_lower_bounds_from_congestion(&mut self) {
        if self.state.is_probing_bw() || !self.is_loss_in_round {
            return;
        }
        if self.bw_shortterm == Rate::MAX {
            self.bw_shortterm = self.max_bw;
        }
        if self.inflight_shortterm == Bytes::MAX {
            self.inflight_shortterm = self.cwnd;
        }
        self.bw_shortterm = self.bw_latest.max(self.bw_shortterm.mul_f64(self.beta));
        self.inflight_shortterm = self
            .inflight_latest
            .max(self.inflight_shortterm.mul_f64(self.beta));
    }

    /// §5.5.10.3.
    pub(super) fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        self.bw_latest = Rate::ZERO;
        self.inflight_latest = Bytes::ZERO;
    }

    /// §5.5.10.3.
    pub(super) fn reset_short_term_model(&mut self) {
        self.bw_shortterm = Rate::MAX;
        self.inflight_shortterm = Bytes::MAX;
    }

    /// Entering fast recovery or an RTO saves the state (OnEnterFastRecovery, OnEnterRTO), and
    /// leaving restores it (§5.6.4.4).
    pub(super) fn follow_recovery(&mut self, recovery: Recovery) {
        let was = self.c.in_loss_recovery();
        let is = matches!(recovery, Recovery::Recovery | Recovery::Loss);
        if is && !was {
            self.save_state_upon_loss();
        }
        self.c.recovery = recovery;
        if was && !is {
            self.restore_cwnd();
        }
    }

    /// SaveStateUponLoss (§5.5.11.1).
    fn save_state_upon_loss(&mut self) {
        self.save_cwnd();
        self.undo = Undo {
            state: None,
            bw_shortterm: self.bw_shortterm,
            inflight_shortterm: self.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
        };
    }

    /// Startup ended by a loss that may turn out to be spurious (§5.3.1.3).
    pub(super) fn undo_to_startup(&mut self) {
        self.undo.state = Some(State::Startup);
    }

    /// HandleSpuriousLossDetection (§5.5.11.2).
    pub(super) fn handle_spurious_loss_detection(&mut self) {
        self.restore_cwnd();
        self.is_loss_in_round = false;
        self.full_pipe.reset();
        self.bw_shortterm = self.bw_shortterm.max(self.undo.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.undo.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.undo.inflight_longterm);
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.reached = false;
                if self.state != State::ProbeRtt {
                    self.enter_startup();
                }
            }
            Some(State::ProbeBwUp) if !matches!(self.state, State::ProbeBwUp | State::ProbeRtt) => {
                self.start_probe_bw_refill();
            }
            _ => {}
        }
    }
}
