//! What a policy says at a decision.

use crate::ActionSpec;

/// What a policy says at a decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// What is to be done, as [`ActionSpec`] reads it.
    pub action: f32,
    /// How long the interval that begins is to last, as
    /// [`ClockSpec::Chosen`](crate::ClockSpec::Chosen) reads it; none where the clock does not ask
    /// for it, or it is to be as long as the last.
    pub interval: Option<f32>,
}

impl Answer {
    /// Does nothing, whatever the action, and leaves the interval as long as it was.
    pub const NEUTRAL: Answer = Answer {
        action: ActionSpec::NEUTRAL,
        interval: None,
    };
}

/// Of a policy whose intervals are its clock's.
impl From<f32> for Answer {
    fn from(action: f32) -> Answer {
        Answer {
            action,
            ..Answer::NEUTRAL
        }
    }
}
