//! What a policy answers at a decision.

use crate::ActionSpec;

/// What a policy answers at a decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// The action's value, as [`ActionSpec`] reads it.
    pub action: f32,
    /// The length of the interval that begins, as [`ClockSpec::Chosen`](crate::ClockSpec::Chosen)
    /// reads it. `None` keeps the last length, and is right for all other clocks.
    pub interval: Option<f32>,
}

impl Answer {
    /// The answer that does nothing, whatever the action, and keeps the interval's length.
    pub const NEUTRAL: Answer = Answer {
        action: ActionSpec::NEUTRAL,
        interval: None,
    };
}

/// An answer that leaves the length of intervals to the clock.
impl From<f32> for Answer {
    fn from(action: f32) -> Answer {
        Answer {
            action,
            ..Answer::NEUTRAL
        }
    }
}
