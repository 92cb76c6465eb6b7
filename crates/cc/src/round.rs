//! Round trips counted in packets rather than in time.

use crate::Feedback;

/// Counts round trips: one ends when a packet that was sent after it began is acknowledged
/// (RFC 9406 §4.2's `windowEnd`; BBR's "packet-timed" rounds).
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundCounter {
    window_end: u64,
    count: u64,
}

impl RoundCounter {
    /// Folds one feedback; true if a new round begins with it.
    #[inline]
    pub fn on_feedback(&mut self, f: &Feedback<'_>) -> bool {
        if f.acked_bytes.get() == 0 || f.largest_acked < self.window_end {
            return false;
        }
        self.window_end = f.next_number;
        self.count += 1;
        true
    }

    /// How many rounds have begun.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Begins a new round now, at the packet numbered `next_number`.
    pub const fn restart(&mut self, next_number: u64) {
        self.window_end = next_number;
    }
}
