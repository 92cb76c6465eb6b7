//! How long a flow takes to find its share.

use headway_cc::Duration;

/// Watches a flow second by second for the moment from which its rate stays within 25% of its
/// ideal share for at least five seconds (PCC, NSDI'15 §4.2.2).
#[derive(Clone, Debug, Default)]
pub struct Convergence {
    seconds: u32,
    held: u32,
    reached: Option<u32>,
}

impl Convergence {
    /// The length of a bin: how often [`on_second`](Self::on_second) is called.
    pub const BIN: Duration = Duration::from_secs(1);
    /// For how many bins the share must hold.
    const HOLD: u32 = 5;
    /// The largest relative distance from the share.
    const BAND: f64 = 0.25;

    /// Adds a full second of the flow's life, without the one in which it began: the bytes that
    /// arrived, and the flow's share.
    pub fn on_second(&mut self, received: f64, share: f64) {
        let near = share > 0.0 && (received - share).abs() <= Self::BAND * share;
        self.held = if near { self.held + 1 } else { 0 };
        self.seconds += 1;
        if self.held == Self::HOLD {
            self.reached.get_or_insert(self.seconds - Self::HOLD);
        }
    }

    /// Seconds from the flow's first full second until it reached its share and held it; `None` if
    /// it did not.
    pub fn seconds(&self) -> Option<f64> {
        self.reached.map(f64::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(received: &[f64], share: f64) -> Option<f64> {
        let mut convergence = Convergence::default();
        received
            .iter()
            .for_each(|&r| convergence.on_second(r, share));
        convergence.seconds()
    }

    #[test]
    fn counts_from_the_first_of_five_good_seconds() {
        let rate = [
            1.0, 8.0, 12.0, 13.0, 9.0, 10.0, 8.0, 12.0, 10.0, 1.0, 1.0, 1.0,
        ];
        assert_eq!(watch(&rate, 10.0), Some(4.0));
        assert_eq!(watch(&rate[..8], 10.0), None);
        assert_eq!(watch(&[0.0; 9], 0.0), None);
        assert_eq!(watch(&[10.0; 5], 10.0), Some(0.0));
    }
}
