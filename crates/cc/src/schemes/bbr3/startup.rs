//! Startup and Drain: Startup finds the bandwidth by doubling the rate, then Drain empties the
//! queue (§5.3.1, §5.3.2).

use super::{Bbr3, State};
use crate::{Rate, Recovery};

/// The pipe is full when the rate grew by less than this factor in `ROUNDS` rounds (§5.3.1.2).
const GROWTH: f64 = 1.25;
const ROUNDS: u32 = 3;
/// BBRStartupFullLossCnt: the number of lost ranges in a round that ends Startup (§5.3.1.3).
const FULL_LOSS_COUNT: u32 = 6;
/// Drain ends after more rounds than this (§5.3.2).
const DRAIN_ROUNDS: u64 = 3;

/// Whether the sending rate has reached the bandwidth (§2.13).
#[derive(Debug, Default)]
pub(super) struct FullPipe {
    /// BBR.full_bw_reached: it has at some time in the flow's life.
    pub(super) reached: bool,
    /// BBR.full_bw_now: it has since the last reset.
    pub(super) now: bool,
    /// BBR.full_bw.
    pub(super) bw: Rate,
    /// BBR.full_bw_count.
    pub(super) count: u32,
}

impl FullPipe {
    /// ResetFullBW (§5.3.1.2).
    pub(super) fn reset(&mut self) {
        (self.bw, self.count, self.now) = (Rate::ZERO, 0, false);
    }
}

impl Bbr3 {
    /// EnterStartup (§5.3.1.1).
    pub(super) fn enter_startup(&mut self) {
        self.state = State::Startup;
    }

    /// CheckFullBWReached (§5.3.1.2), in Startup and ProbeBW_UP.
    pub(super) fn check_full_bw_reached(&mut self) {
        let full = &mut self.full_pipe;
        if full.now || !self.round_start || self.rs.is_app_limited {
            return;
        }
        if self.rs.delivery_rate >= full.bw.mul_f64(GROWTH) {
            full.reset();
            full.bw = self.rs.delivery_rate;
            return;
        }
        full.count += 1;
        full.now = full.count >= ROUNDS;
        full.reached |= full.now;
    }

    /// CheckStartupDone (§5.3.1.1).
    pub(super) fn check_startup_done(&mut self) {
        self.check_startup_high_loss();
        if self.state == State::Startup && self.full_pipe.reached {
            self.enter_drain();
        }
    }

    /// CheckStartupHighLoss (§5.3.1.3): in a round in fast recovery more than LossThresh was lost,
    /// in at least six ranges. A loss round begins with the first loss, so it ends a round later.
    fn check_startup_high_loss(&mut self) {
        if !self.loss_round_start {
            return;
        }
        let ranges = std::mem::take(&mut self.lost_ranges);
        if self.full_pipe.reached
            || self.c.recovery != Recovery::Recovery
            || ranges < FULL_LOSS_COUNT
            || !self.is_inflight_too_high(self.rs.lost, self.rs.tx_in_flight)
        {
            return;
        }
        self.undo_to_startup();
        (self.full_pipe.reached, self.full_pipe.now) = (true, true);
        self.inflight_longterm = self.bdp_multiple(self.bw, 1.0).max(self.inflight_latest);
    }

    /// EnterDrain (§5.3.2).
    fn enter_drain(&mut self) {
        self.state = State::Drain;
        self.drain_start_round = self.rounds.count();
    }

    /// CheckDrainDone (§5.3.2).
    pub(super) fn check_drain_done(&mut self) {
        if self.state == State::Drain
            && (self.c.inflight <= self.inflight(self.bw, 1.0)
                || self.rounds.count() > self.drain_start_round + DRAIN_ROUNDS)
        {
            self.start_probe_bw_down();
        }
    }
}
