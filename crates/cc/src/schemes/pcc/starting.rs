//! Starting: doubles the rate while the utility rises (NSDI 2015 §3.2). The whole family uses it.

use super::Verdict;

/// The rate, which doubles from trial to trial.
#[derive(Debug)]
pub(super) struct Starting {
    /// The last rate with a higher utility, in Mbit/s.
    pub(super) rate: f64,
    best: f64,
    tried: bool,
}

impl Starting {
    /// A start whose first trial has the rate `first`.
    pub(super) fn new(first: f64) -> Starting {
        Starting {
            rate: first / 2.0,
            // Sending nothing has a utility of zero (PCC-Uspace).
            best: 0.0,
            tried: false,
        }
    }

    pub(super) fn next_trial(&mut self) -> Option<f64> {
        (!std::mem::replace(&mut self.tried, true)).then_some(2.0 * self.rate)
    }

    /// `Wait` if the utility did not rise: Starting is then over, and [`rate`](Self::rate) is the
    /// last good rate.
    pub(super) fn on_result(&mut self, utility: f64) -> Verdict {
        self.tried = false;
        if utility <= self.best {
            return Verdict::Wait;
        }
        (self.rate, self.best) = (2.0 * self.rate, utility);
        Verdict::Move
    }

    pub(super) fn abandon(&mut self) {
        self.tried = false;
    }
}
