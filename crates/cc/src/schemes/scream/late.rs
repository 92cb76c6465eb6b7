//! Missing packets may only be late (draft §"Detecting Lost Data Units").

use std::collections::VecDeque;

use crate::{Duration, Feedback, Time};

/// A packet with the lost flag.
#[derive(Debug)]
struct Missing {
    number: u64,
    since: Time,
    /// Was the packet not found in time?
    is_lost: bool,
}

/// The packets that were missing in the last round trip, and the reordering window, which is the
/// time until a missing packet counts as lost.
#[derive(Debug, Default)]
pub(super) struct LatePackets {
    missing: VecDeque<Missing>,
    reordering_window: Duration,
}

impl LatePackets {
    /// Has a packet been missing for so long that it is lost?
    pub(super) fn detects_loss(&mut self, f: &Feedback<'_>, s_rtt: Duration) -> bool {
        while self
            .missing
            .front()
            .is_some_and(|m| m.is_lost && f.now.since(m.since) >= s_rtt)
        {
            self.missing.pop_front();
        }
        let newest = self.missing.back().map(|m| m.number);
        let late = f
            .acked
            .iter()
            .filter(|a| newest.is_some_and(|n| a.number <= n));
        for acked in late {
            if let Some(i) = self.missing.iter().position(|m| m.number == acked.number) {
                let wait = f.now.since(self.missing[i].since);
                self.reordering_window = self.reordering_window.max(wait);
                self.missing.remove(i);
            }
        }
        self.reordering_window = self.reordering_window.min(s_rtt);
        self.missing.extend(f.lost.iter().map(|lost| Missing {
            number: lost.number,
            since: f.now,
            is_lost: false,
        }));
        let mut detected = false;
        for missing in self.missing.iter_mut().rev() {
            if missing.is_lost {
                break;
            }
            missing.is_lost = f.now.since(missing.since) >= self.reordering_window;
            detected |= missing.is_lost;
        }
        detected
    }
}
