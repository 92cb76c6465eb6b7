//! Starting: double the rate as long as that is better (NSDI 2015 §3.2), alike in the whole family.

use super::Verdict;

/// The rate doubles from trial to trial.
#[derive(Debug)]
pub(super) struct Starting {
    /// The last rate that was good, in Mbit/s.
    pub(super) rate: f64,
    best: f64,
    tried: bool,
}

impl Starting {
    /// The first trial is of `first`.
    pub(super) fn new(first: f64) -> Starting {
        Starting {
            rate: first / 2.0,
            // Nothing sent is worth nothing (PCC-Uspace).
            best: 0.0,
            tried: false,
        }
    }

    pub(super) fn next_trial(&mut self) -> Option<f64> {
        (!std::mem::replace(&mut self.tried, true)).then_some(2.0 * self.rate)
    }

    /// `Wait` if it was not better: Starting is over, and [`rate`](Self::rate) is what was good.
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
