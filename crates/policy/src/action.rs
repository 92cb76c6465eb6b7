//! What a policy's answer does.

use serde::{Deserialize, Serialize};

use crate::SpecError;

/// How a policy's answer is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ActionSpec {
    /// One of several values; the answer is its index.
    Discrete {
        /// What a value does.
        effect: Effect,
        /// The values.
        choices: Vec<f64>,
    },
    /// One value, kept within `limit` on both sides of zero.
    Continuous {
        /// What the value does.
        effect: Effect,
        /// The largest value, either way.
        limit: f64,
    },
}

/// What a value does to the controller beneath.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "does", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Effect {
    /// Adds so many packets to the window (Owl, Rax).
    AddCwnd,
    /// Multiplies the window by `base` to the power of the value (Orca: 4).
    ScaleCwnd {
        /// Above 1.
        base: f64,
    },
    /// Multiplies the sending rate by 1 + `delta` x value if that is above zero, else divides it by
    /// 1 - `delta` x value (Aurora §4.1).
    ScaleRate {
        /// Above 0.
        delta: f64,
    },
    /// Sets a parameter of the controller beneath (the BBR tuner).
    Set {
        /// Its name.
        parameter: String,
    },
}

/// What is to be done to the controller beneath.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action<'a> {
    /// Add so many packets to the window.
    AddCwnd(f64),
    /// Multiply the window.
    ScaleCwnd(f64),
    /// Multiply the sending rate.
    ScaleRate(f64),
    /// Set a parameter.
    Set(&'a str, f64),
}

impl ActionSpec {
    /// How many numbers a network that decides puts out: one a choice, or one.
    pub fn outputs(&self) -> usize {
        match self {
            ActionSpec::Discrete { choices, .. } => choices.len(),
            ActionSpec::Continuous { .. } => 1,
        }
    }

    /// The answer that a network's outputs stand for: the index of the largest (the first of equals), or the value.
    pub fn choose(&self, outputs: &[f32]) -> f32 {
        match self {
            ActionSpec::Discrete { .. } => {
                let mut best = 0;
                for (i, output) in outputs.iter().enumerate() {
                    if *output > outputs[best] {
                        best = i;
                    }
                }
                best as f32
            }
            ActionSpec::Continuous { .. } => outputs[0],
        }
    }

    /// What an answer does. One that is not a number does nothing: the neutral action.
    pub fn action(&self, answer: f32) -> Action<'_> {
        match self {
            ActionSpec::Discrete { effect, choices } => {
                let index = (answer.max(0.0) as usize).min(choices.len() - 1);
                effect.of(choices[index])
            }
            ActionSpec::Continuous { effect, limit } => match answer.is_nan() {
                true => effect.of(0.0),
                false => effect.of(f64::from(answer).clamp(-limit, *limit)),
            },
        }
    }

    /// That it can be carried out.
    ///
    /// # Errors
    /// [`SpecError`] if a number is out of range.
    pub fn check(&self) -> Result<(), SpecError> {
        let effect = match self {
            ActionSpec::Discrete { effect, choices } => {
                if !(2..=1024).contains(&choices.len()) || !choices.iter().all(|c| c.is_finite()) {
                    return Err(SpecError(
                        "action: choices must be 2 to 1024 finite numbers".to_owned(),
                    ));
                }
                effect
            }
            ActionSpec::Continuous { effect, limit } => {
                if !(limit.is_finite() && *limit > 0.0) {
                    return Err(SpecError(format!(
                        "action: limit is {limit}, must be above 0"
                    )));
                }
                effect
            }
        };
        match *effect {
            Effect::ScaleCwnd { base } if !(base.is_finite() && base > 1.0) => Err(SpecError(
                format!("action: base is {base}, must be above 1"),
            )),
            Effect::ScaleRate { delta } if !(delta.is_finite() && delta > 0.0) => Err(SpecError(
                format!("action: delta is {delta}, must be above 0"),
            )),
            _ => Ok(()),
        }
    }
}

impl Effect {
    fn of(&self, value: f64) -> Action<'_> {
        match self {
            Effect::AddCwnd => Action::AddCwnd(value),
            Effect::ScaleCwnd { base } => Action::ScaleCwnd(libm::pow(*base, value)),
            Effect::ScaleRate { delta } => Action::ScaleRate(match value >= 0.0 {
                true => 1.0 + delta * value,
                false => 1.0 / (1.0 - delta * value),
            }),
            Effect::Set { parameter } => Action::Set(parameter, value),
        }
    }
}
