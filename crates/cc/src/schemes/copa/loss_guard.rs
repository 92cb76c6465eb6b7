//! Stops a flow whose RTTmin is wrong.
//!
//! The paper ignores loss in default mode. If the buffer is smaller than Copa's own oscillation,
//! the queue can stay full for the ten seconds that RTTmin lasts. Then d_q is taken for zero, and
//! the window grows without end. genericCC, the authors' code, reduces it under heavy loss.

/// Counts arrivals and losses over two round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossGuard {
    acked: f64,
    lost: f64,
    rounds: u32,
}

impl LossGuard {
    /// The factor of the window after heavy loss (genericCC).
    pub(super) const DECREASE: f64 = 0.7;
    /// The share of lost packets above which loss is heavy (genericCC).
    const SHARE: f64 = 0.3;
    /// The smallest number of packets that counts (genericCC).
    const PACKETS: f64 = 20.0;
    /// The number of round trips that are counted (genericCC).
    const ROUNDS: u32 = 2;

    /// Takes the packets that are newly acknowledged and lost. Should the window shrink?
    pub(super) fn on_feedback(&mut self, acked: f64, lost: f64, new_round: bool) -> bool {
        self.acked += acked;
        self.lost += lost;
        self.rounds += u32::from(new_round);
        if self.rounds < Self::ROUNDS {
            return false;
        }
        let packets = self.acked + self.lost;
        let heavy = packets >= Self::PACKETS && self.lost > Self::SHARE * packets;
        *self = LossGuard::default();
        heavy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heavy_loss_is_over_three_tenths_of_twenty_packets_in_two_rounds() {
        for (acked, lost, heavy) in [(14.0, 6.0, false), (13.9, 6.1, true), (9.0, 10.0, false)] {
            let mut guard = LossGuard::default();
            assert!(
                !guard.on_feedback(acked, lost, true),
                "one round is too early"
            );
            assert_eq!(
                guard.on_feedback(0.0, 0.0, true),
                heavy,
                "{acked} and {lost}"
            );
            assert!(!guard.on_feedback(0.0, 0.0, true), "it starts again");
        }
    }
}
