//! A step of the window.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Action, SpecError};

/// A step of the window in its written form: `+10` and `-10` are whole packets, `*2` and `/2` are
/// factors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Step {
    /// Adds this many packets.
    Plus(u32),
    /// Takes this many packets away.
    Minus(u32),
    /// Multiplies by this number, above 0.
    Times(f64),
    /// Divides by this number, above 0.
    Over(f64),
}

impl Step {
    /// The action of this step on the base controller.
    pub fn action(self) -> Action<'static> {
        match self {
            Step::Plus(packets) => Action::AddCwnd(f64::from(packets)),
            Step::Minus(packets) => Action::AddCwnd(-f64::from(packets)),
            Step::Times(factor) => Action::ScaleCwnd(factor),
            Step::Over(factor) => Action::ScaleCwnd(1.0 / factor),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Plus(packets) => write!(f, "+{packets}"),
            Step::Minus(packets) => write!(f, "-{packets}"),
            Step::Times(factor) => write!(f, "*{factor}"),
            Step::Over(factor) => write!(f, "/{factor}"),
        }
    }
}

impl FromStr for Step {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Step, SpecError> {
        let wrong = || {
            SpecError(format!(
                "step '{text}' must be whole packets such as +10 or -10, or a factor such as *2 or /2"
            ))
        };
        let number = text.get(1..).unwrap_or_default();
        // A second sign, infinity and other words are refused.
        if !number.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(wrong());
        }
        let packets = || number.parse::<u32>().map_err(|_| wrong());
        let factor = || match number.parse::<f64>() {
            Ok(factor) if factor.is_normal() && (1.0 / factor).is_normal() => Ok(factor),
            _ => Err(wrong()),
        };
        match &text[..1] {
            "+" => packets().map(Step::Plus),
            "-" => packets().map(Step::Minus),
            "*" => factor().map(Step::Times),
            "/" => factor().map(Step::Over),
            _ => Err(wrong()),
        }
    }
}

impl TryFrom<String> for Step {
    type Error = SpecError;

    fn try_from(text: String) -> Result<Step, SpecError> {
        text.parse()
    }
}

impl From<Step> for String {
    fn from(step: Step) -> String {
        step.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_parsed_and_applied_as_written() {
        for (text, action) in [
            ("+0", Action::AddCwnd(0.0)),
            ("+10", Action::AddCwnd(10.0)),
            ("-10", Action::AddCwnd(-10.0)),
            ("*2", Action::ScaleCwnd(2.0)),
            ("/2", Action::ScaleCwnd(0.5)),
            ("*1.25", Action::ScaleCwnd(1.25)),
        ] {
            let step: Step = text.parse().expect("a step");
            assert_eq!(step.action(), action);
            assert_eq!(step.to_string(), text);
        }
        assert_eq!("*2.0".parse(), Ok(Step::Times(2.0)), "the same hash");
        for text in [
            "",
            "+",
            "10",
            "0",
            "x2",
            "\u{d7}2",
            "+2.5",
            "+-3",
            "++3",
            "- 3",
            "*0",
            "/0",
            "*-2",
            "*inf",
            "/nan",
            "*1e999",
            "/1e-320",
            "+9999999999",
        ] {
            let wrong = text.parse::<Step>().expect_err(text).to_string();
            assert!(wrong.contains("such as *2 or /2"), "{wrong}");
        }
    }
}
