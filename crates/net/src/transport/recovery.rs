//! The state of loss recovery: when a congestion event begins and ends, and whether it was
//! spurious.

use headway_cc::{Congestion, Recovery};

use super::Profile;

/// The state of loss recovery (RFC 6582, RFC 6675 §5; RFC 3168 §6.1.2; RFC 4015).
#[derive(Debug, Default)]
pub(super) struct RecoveryState {
    pub(super) phase: Recovery,
    /// Recovery ends when the stream has arrived up to here, which is what had been sent when it
    /// began.
    recover_seq: u64,
    /// Packets from this number on left after the reduction.
    event_number: u64,
    /// The first packet declared lost in this event, how many were declared lost, and how many of
    /// them arrived later.
    first_lost: u64,
    lost: u64,
    arrived_late: u64,
    /// Packets below this number left before the first of the last timeouts in a row. The first
    /// acknowledgement checks it, once.
    timeout_check: Option<u64>,
}

/// The packets just declared lost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    pub(super) packets: u64,
    pub(super) first_number: u64,
    pub(super) last_number: u64,
    pub(super) last_seq: u64,
}

impl RecoveryState {
    /// Ends the event if everything sent before it has arrived.
    #[inline]
    pub(super) fn on_progress(&mut self, cumulative: u64, largest_acked: u64) {
        let over = match self.phase {
            Recovery::Open | Recovery::Disorder => false,
            Recovery::Cwr => largest_acked >= self.event_number,
            Recovery::Recovery | Recovery::Loss => cumulative >= self.recover_seq,
        };
        if over {
            self.phase = Recovery::Open;
        }
    }

    /// Packets were lost, with everything below `next_number` and `next_seq` sent. Returns the
    /// congestion event if this is a new one: there is one a flight. Of packets that left after the
    /// reduction, `Simple` counts any (RFC 9002 §7.3.2), `Linux` only new data (RFC 6675 §5).
    pub(super) fn on_lost(
        &mut self,
        losses: Losses,
        profile: Profile,
        next_number: u64,
        next_seq: u64,
    ) -> Option<Congestion> {
        let before = self.phase;
        let repairing = matches!(before, Recovery::Recovery | Recovery::Loss);
        let after_reduction = match profile {
            Profile::Simple => losses.last_number >= self.event_number,
            Profile::Linux => losses.last_seq >= self.recover_seq,
        };
        if repairing && !after_reduction {
            self.lost += losses.packets;
            return None;
        }
        self.phase = Recovery::Recovery;
        self.recover_seq = next_seq;
        self.first_lost = losses.first_number;
        (self.lost, self.arrived_late) = (losses.packets, 0);
        if before == Recovery::Cwr && losses.last_number < self.event_number {
            // A flight whose mark was already answered is not answered again.
            return None;
        }
        self.event_number = next_number;
        Some(Congestion::Loss)
    }

    /// A packet was marked. Returns the congestion event if this is a new one.
    pub(super) fn on_marked(&mut self, next_number: u64) -> Option<Congestion> {
        if self.phase != Recovery::Open {
            return None;
        }
        self.phase = Recovery::Cwr;
        self.event_number = next_number;
        Some(Congestion::Ecn)
    }

    /// The timer ran out with everything below `next_number` and `next_seq` sent.
    pub(super) fn on_timeout(&mut self, next_number: u64, next_seq: u64) {
        self.phase = Recovery::Loss;
        self.recover_seq = next_seq;
        self.event_number = next_number;
        // The second timeout may take the first one's retransmission for lost (RFC 3522 §3.2).
        self.timeout_check.get_or_insert(next_number);
        (self.lost, self.arrived_late) = (0, 0);
    }

    /// The first acknowledgement after a timeout. If it is for a packet sent before, the timeout
    /// was spurious (Eifel detection, RFC 3522; numbers never repeat, so no timestamp is needed).
    #[inline]
    pub(super) fn timeout_was_spurious(&mut self, newest_acked: u64) -> bool {
        let spurious = self
            .timeout_check
            .take()
            .is_some_and(|end| newest_acked < end);
        if spurious {
            self.phase = Recovery::Open;
        }
        spurious
    }

    /// A packet that was declared lost has arrived. Returns true if it was the last one of this
    /// event: the reduction was spurious.
    pub(super) fn on_late_arrival(&mut self, number: u64) -> bool {
        if self.phase != Recovery::Recovery || number < self.first_lost {
            return false;
        }
        self.arrived_late += 1;
        let spurious = self.arrived_late == self.lost;
        if spurious {
            self.phase = Recovery::Open;
        }
        spurious
    }
}
