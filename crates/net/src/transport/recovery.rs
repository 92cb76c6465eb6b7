//! Where loss recovery stands: when a congestion event begins and ends, and whether it was for nothing.

use headway_cc::{Congestion, Recovery};

/// The state of loss recovery (RFC 6582, RFC 6675 §5; RFC 3168 §6.1.2; RFC 4015).
#[derive(Debug, Default)]
pub(super) struct RecoveryState {
    pub(super) phase: Recovery,
    /// Recovery ends when the stream has arrived up to here: what had been sent when it began.
    recover_seq: u64,
    /// `Cwr` ends when a packet from here on is acknowledged.
    cwr_end: u64,
    /// Packets declared lost in this event, and those of them that arrived after all.
    lost: u64,
    arrived_late: u64,
    /// Packets below this number left before the last timeout; checked once, by the first acknowledgement.
    timeout_check: Option<u64>,
}

impl RecoveryState {
    /// Everything sent before the event has arrived: back to normal.
    #[inline]
    pub(super) fn on_progress(&mut self, cumulative: u64, largest_acked: u64) {
        let over = match self.phase {
            Recovery::Open | Recovery::Disorder => false,
            Recovery::Cwr => largest_acked >= self.cwr_end,
            Recovery::Recovery | Recovery::Loss => cumulative >= self.recover_seq,
        };
        if over {
            self.phase = Recovery::Open;
        }
    }

    /// Packets were lost. Returns whether that is news: one event a flight.
    pub(super) fn on_lost(&mut self, packets: u64, next_seq: u64) -> Option<Congestion> {
        let before = self.phase;
        if matches!(before, Recovery::Open | Recovery::Cwr) {
            self.phase = Recovery::Recovery;
            self.recover_seq = next_seq;
            (self.lost, self.arrived_late) = (0, 0);
        }
        self.lost += packets;
        // A flight that was already answered for a mark is not answered again.
        (before == Recovery::Open).then_some(Congestion::Loss)
    }

    /// A packet was marked. Returns whether that is news.
    pub(super) fn on_marked(&mut self, next_number: u64) -> Option<Congestion> {
        if self.phase != Recovery::Open {
            return None;
        }
        self.phase = Recovery::Cwr;
        self.cwr_end = next_number;
        Some(Congestion::Ecn)
    }

    /// The timer ran out with everything below `next_number` and `next_seq` sent.
    pub(super) fn on_timeout(&mut self, next_number: u64, next_seq: u64) {
        self.phase = Recovery::Loss;
        self.recover_seq = next_seq;
        self.timeout_check = Some(next_number);
        (self.lost, self.arrived_late) = (0, 0);
    }

    /// The first acknowledgement after a timeout: was it for a packet sent before? Then the
    /// timeout was spurious (Eifel detection, RFC 3522; numbers never repeat, so no timestamp is needed).
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

    /// A packet that was declared lost has arrived. True if that was the last of this event's: the
    /// reduction was for nothing.
    pub(super) fn on_late_arrival(&mut self) -> bool {
        self.arrived_late += 1;
        let spurious = self.phase == Recovery::Recovery && self.arrived_late == self.lost;
        if spurious {
            self.phase = Recovery::Open;
        }
        spurious
    }
}
