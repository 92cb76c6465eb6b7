//! How long a flow takes to find its share.

use headway_cc::Duration;

/// The bin in which rates are compared.
pub const BIN: Duration = Duration::from_secs(1);

/// How long the share must be held.
const HOLD: usize = 5;
/// How near is near enough.
const BAND: f64 = 0.25;

/// Seconds from a flow's start until its rate stays within 25% of its ideal share for at least
/// five seconds (PCC, NSDI'15 §4.2.2); `None` if it never does.
///
/// `received` and `share` are bytes in each second of the flow's life, the second in which it
/// began left out.
pub fn convergence_time(received: &[f64], share: &[f64]) -> Option<f64> {
    let mut held = 0;
    for (i, (r, s)) in received.iter().zip(share).enumerate() {
        held = if (r - s).abs() <= BAND * s && *s > 0.0 {
            held + 1
        } else {
            0
        };
        if held == HOLD {
            return Some((i + 1 - HOLD) as f64);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_from_the_first_of_five_good_seconds() {
        let share = [10.0; 12];
        let rate = [
            1.0, 8.0, 12.0, 13.0, 9.0, 10.0, 8.0, 12.0, 10.0, 1.0, 1.0, 1.0,
        ];
        assert_eq!(convergence_time(&rate, &share), Some(4.0));
        assert_eq!(convergence_time(&rate[..8], &share), None);
        assert_eq!(convergence_time(&[0.0; 9], &[0.0; 9]), None);
    }
}
