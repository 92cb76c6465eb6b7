//! What a policy's answer does.

use serde::{Deserialize, Serialize};

use crate::{SpecError, Step};

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
    /// One of several steps of the window, which may add and multiply in one set (mvfst-rl). The
    /// answer is the step's index.
    Steps {
        /// The steps, in the form in which specs write them: `"+10"`, `"-10"`, `"*2"`, `"/2"`.
        choices: Vec<Step>,
    },
    /// One value, kept within `limit` on both sides of zero.
    Continuous {
        /// What the value does.
        effect: Effect,
        /// The largest value in either direction.
        limit: f64,
    },
    /// One of several settings of the base controller's parameters (the BBR tuner). The answer is
    /// the setting's index.
    Settings {
        /// The parameters' names.
        parameters: Vec<String>,
        /// Each setting has one value for each parameter. A time is in seconds.
        choices: Vec<Vec<f64>>,
    },
}

/// What a value does to the base controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "does", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Effect {
    /// Adds this number of packets to the window, rounded to whole packets as in the kernel (Owl,
    /// Rax).
    AddCwnd,
    /// Multiplies the window by `base` to the power of the value. Orca's base is 4.
    ScaleCwnd {
        /// The base, above 1.
        base: f64,
    },
    /// Multiplies the sending rate by 1 + `delta` x value if the value is above zero, else divides
    /// it by 1 - `delta` x value (Aurora §4.1).
    ScaleRate {
        /// The step's size, above 0.
        delta: f64,
    },
    /// Sets a parameter of the base controller. A time is in seconds.
    Set {
        /// The parameter's name.
        parameter: String,
    },
}

/// What the base controller should do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action<'a> {
    /// Leave everything as it is.
    Nothing,
    /// Add this number of packets to the window.
    AddCwnd(f64),
    /// Multiply the window.
    ScaleCwnd(f64),
    /// Multiply the sending rate.
    ScaleRate(f64),
    /// Set a parameter.
    Set(&'a str, f64),
    /// Set several parameters.
    Settings(&'a [String], &'a [f64]),
}

impl ActionSpec {
    /// The answer that does nothing, whatever the action.
    pub const NEUTRAL: f32 = f32::NAN;

    /// How many outputs the network has: one for each choice, or a single value.
    pub fn outputs(&self) -> usize {
        match self {
            ActionSpec::Discrete { choices, .. } => choices.len(),
            ActionSpec::Steps { choices } => choices.len(),
            ActionSpec::Continuous { .. } => 1,
            ActionSpec::Settings { choices, .. } => choices.len(),
        }
    }

    /// Turns a network's outputs into an answer: the index of the largest output (the first if
    /// several are equal), or the value.
    pub fn choose(&self, outputs: &[f32]) -> f32 {
        match self {
            ActionSpec::Continuous { .. } => outputs[0],
            _ => largest(outputs) as f32,
        }
    }

    /// What an answer does. An answer that is not a number, such as [`NEUTRAL`](Self::NEUTRAL),
    /// does nothing.
    pub fn action(&self, answer: f32) -> Action<'_> {
        if answer.is_nan() {
            return Action::Nothing;
        }
        match self {
            ActionSpec::Discrete { effect, choices } => {
                effect.of(choices[index(answer, choices.len())])
            }
            ActionSpec::Steps { choices } => choices[index(answer, choices.len())].action(),
            ActionSpec::Settings {
                parameters,
                choices,
            } => Action::Settings(parameters, &choices[index(answer, choices.len())]),
            ActionSpec::Continuous { effect, limit } => {
                effect.of(f64::from(answer).clamp(-limit, *limit))
            }
        }
    }

    /// Is the answer the largest change in either direction? It never is for settings of
    /// parameters, which have no order. Steps are compared by what they do to a window of 1000
    /// packets.
    pub fn is_at_bound(&self, answer: f32) -> bool {
        let step = |step: &Step| match step.action() {
            Action::ScaleCwnd(factor) => (factor - 1.0) * 1000.0,
            Action::AddCwnd(packets) => packets,
            _ => 0.0,
        };
        match self {
            _ if answer.is_nan() => false,
            ActionSpec::Discrete { choices, .. } => is_smallest_or_largest(choices, answer),
            ActionSpec::Steps { choices } => {
                let changes: Vec<f64> = choices.iter().map(step).collect();
                is_smallest_or_largest(&changes, answer)
            }
            ActionSpec::Continuous { limit, .. } => f64::from(answer).abs() >= *limit,
            ActionSpec::Settings { .. } => false,
        }
    }

    /// Checks that the action can be carried out.
    ///
    /// # Errors
    /// [`SpecError`] if a number is out of range.
    pub fn check(&self) -> Result<(), SpecError> {
        let effect = match self {
            ActionSpec::Discrete { effect, choices } => {
                check_choices(choices.len(), choices.iter())?;
                effect
            }
            ActionSpec::Steps { choices } => return check_choices(choices.len(), [].iter()),
            ActionSpec::Continuous { effect, limit } => {
                if !(limit.is_finite() && *limit > 0.0) {
                    return Err(SpecError(format!(
                        "action: limit is {limit}, must be above 0"
                    )));
                }
                effect
            }
            ActionSpec::Settings {
                parameters,
                choices,
            } => {
                let width = parameters.len();
                if width == 0 || choices.iter().any(|c| c.len() != width) {
                    return Err(SpecError(
                        "action: each of the choices must have a value for each of the parameters"
                            .to_owned(),
                    ));
                }
                return check_choices(choices.len(), choices.iter().flatten());
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

/// Is the chosen value the smallest or the largest of the choices?
fn is_smallest_or_largest(choices: &[f64], answer: f32) -> bool {
    let chosen = choices[index(answer, choices.len())];
    let is_below = |other: &f64| *other < chosen;
    let is_above = |other: &f64| *other > chosen;
    !(choices.iter().any(is_below) && choices.iter().any(is_above))
}

/// The index of the largest value; the first if several are equal.
pub(crate) fn largest(values: &[f32]) -> usize {
    let better = |best: usize, i: usize| if values[i] > values[best] { i } else { best };
    (1..values.len()).fold(0, better)
}

/// The index that an answer stands for.
fn index(answer: f32, choices: usize) -> usize {
    (answer.max(0.0) as usize).min(choices - 1)
}

fn check_choices<'a>(
    count: usize,
    mut values: impl Iterator<Item = &'a f64>,
) -> Result<(), SpecError> {
    match (2..=1024).contains(&count) && values.all(|v| v.is_finite()) {
        true => Ok(()),
        false => Err(SpecError(
            "action: choices must be 2 to 1024, of finite numbers".to_owned(),
        )),
    }
}

impl Effect {
    fn of(&self, value: f64) -> Action<'_> {
        match self {
            Effect::AddCwnd => Action::AddCwnd(value.round()),
            Effect::ScaleCwnd { base } => Action::ScaleCwnd(libm::pow(*base, value)),
            Effect::ScaleRate { delta } => Action::ScaleRate(match value >= 0.0 {
                true => 1.0 + delta * value,
                false => 1.0 / (1.0 - delta * value),
            }),
            Effect::Set { parameter } => Action::Set(parameter, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_neutral_answer_does_nothing_whatever_the_action() {
        let effect = Effect::Set {
            parameter: "window".to_owned(),
        };
        let specs = [
            ActionSpec::Discrete {
                effect: Effect::AddCwnd,
                choices: vec![-10.0, 0.0, 10.0],
            },
            ActionSpec::Continuous { effect, limit: 5.0 },
        ];
        for spec in specs {
            assert_eq!(spec.action(ActionSpec::NEUTRAL), Action::Nothing);
            assert_ne!(spec.action(0.0), Action::Nothing);
        }
    }

    #[test]
    fn the_largest_change_in_either_direction_is_at_a_bound() {
        let window = ActionSpec::Discrete {
            effect: Effect::AddCwnd,
            choices: vec![0.0, 10.0, -10.0, 3.0],
        };
        let at_bound = [0.0, 1.0, 2.0, 3.0, 99.0].map(|answer| window.is_at_bound(answer));
        // An index beyond the choices counts as the last choice.
        assert_eq!(at_bound, [false, true, true, false, false]);
        let rate = ActionSpec::Continuous {
            effect: Effect::ScaleRate { delta: 0.05 },
            limit: 5.0,
        };
        let at_bound = [-7.0, -5.0, -4.9, 0.0, 4.9, 5.0].map(|answer| rate.is_at_bound(answer));
        assert_eq!(at_bound, [true, true, false, false, false, true]);
        assert!(!window.is_at_bound(ActionSpec::NEUTRAL) && !rate.is_at_bound(ActionSpec::NEUTRAL));
        // Steps may stand in any order, as in the ablations of Owl.
        let steps = ["+0", "-10", "+10", "*2", "/2"].map(|text| text.parse().expect("a step"));
        let steps = ActionSpec::Steps {
            choices: steps.to_vec(),
        };
        let at_bound = [0.0, 1.0, 2.0, 3.0, 4.0].map(|answer| steps.is_at_bound(answer));
        assert_eq!(at_bound, [false, false, false, true, true]);
    }
}
