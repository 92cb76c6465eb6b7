//! The share of marked packets (draft §"Receiving ECN-CE for L4S").

use crate::{Duration, Time};

/// L4S_AVG_G_UP and L4S_AVG_G_DOWN: the share rises fast and falls slowly.
const L4S_AVG_G_UP: f64 = 1.0 / 8.0;
const L4S_AVG_G_DOWN: f64 = 1.0 / 128.0;
const UPDATE_INTERVAL: Duration = Duration::from_millis(10);

/// l4s_alpha: the average share of marked packets.
#[derive(Debug, Default)]
pub(super) struct MarkedShare {
    pub(super) alpha: f64,
    delivered: u32,
    marked: u32,
    updated_at: Time,
}

impl MarkedShare {
    pub(super) fn on_acked(&mut self, marked: bool) {
        self.delivered += 1;
        self.marked += u32::from(marked);
    }

    /// Updates the average, over at least min(10 ms, s_rtt).
    pub(super) fn update(&mut self, now: Time, s_rtt: Duration) {
        if self.delivered == 0 || now.since(self.updated_at) < UPDATE_INTERVAL.min(s_rtt) {
            return;
        }
        let fraction = f64::from(self.marked) / f64::from(self.delivered);
        self.alpha = if fraction >= self.alpha {
            L4S_AVG_G_UP * fraction + (1.0 - L4S_AVG_G_UP) * self.alpha
        } else {
            (1.0 - L4S_AVG_G_DOWN) * self.alpha
        };
        (self.delivered, self.marked, self.updated_at) = (0, 0, now);
    }
}
