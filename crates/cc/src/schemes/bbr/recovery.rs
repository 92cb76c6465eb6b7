//! Loss recovery (§4.2.3.4). A loss is not taken for congestion, but packets are conserved for a
//! round.

use super::policer::Policer;
use super::{Bbr, State};
use crate::{Bytes, Feedback, Rate, Recovery};

impl Bbr {
    fn in_loss_recovery(&self) -> bool {
        matches!(self.recovery, Recovery::Recovery | Recovery::Loss)
    }

    pub(super) fn save_cwnd(&mut self) {
        let kept = if self.in_loss_recovery() || self.state == State::ProbeRtt {
            self.prior_cwnd
        } else {
            Bytes::ZERO
        };
        self.prior_cwnd = kept.max(self.cwnd);
    }

    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    pub(super) fn follow_recovery(&mut self, f: &Feedback<'_>) {
        if self.round_start {
            self.packet_conservation = false;
        }
        let repairing = matches!(f.recovery, Recovery::Recovery | Recovery::Loss);
        if f.recovery == Recovery::Recovery && !self.in_loss_recovery() {
            self.save_cwnd();
            self.cwnd = f.in_flight + f.acked_bytes.max(self.mss);
            self.packet_conservation = true;
            self.rounds.restart(f.next_number);
        } else if self.in_loss_recovery() && !repairing {
            self.packet_conservation = false;
            self.restore_cwnd();
        }
        if f.undo {
            (self.full_bw, self.full_bw_count) = (Rate::ZERO, 0);
            self.policer.iter_mut().for_each(Policer::reset);
        }
        self.recovery = f.recovery;
    }

    /// A timeout: everything in flight is lost, and a round is over.
    pub(super) fn follow_rto(&mut self) {
        self.save_cwnd();
        self.cwnd = self.mss;
        self.packet_conservation = false;
        // As in Linux, earlier measurements no longer show a full pipe.
        self.full_bw = Rate::ZERO;
        self.recovery = Recovery::Loss;
    }
}
