//! Round trips that are counted in packets, not in time.

use crate::Feedback;

/// Counts round trips. One ends when a packet that was sent after its beginning is acknowledged
/// (RFC 9406 §4.2's `windowEnd`; BBR's "packet-timed" rounds).
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundCounter {
    window_end: u64,
    count: u64,
}

impl RoundCounter {
    /// Takes one feedback. Returns true if it begins a new round.
    #[inline]
    pub fn on_feedback(&mut self, f: &Feedback<'_>) -> bool {
        if f.acked_bytes.get() == 0 || f.largest_acked < self.window_end {
            return false;
        }
        self.window_end = f.next_number;
        self.count += 1;
        true
    }

    /// The number of rounds that have begun.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Begins a new round now, at the packet numbered `next_number`.
    pub const fn restart(&mut self, next_number: u64) {
        self.window_end = next_number;
    }
}
