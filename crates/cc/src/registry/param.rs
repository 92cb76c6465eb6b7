//! The parameters that a scheme declares, and what may be written for each.

use std::fmt;

use super::quantity::{bits_per_second, seconds, split_unit};
use super::values::{Loaded, Value};
use crate::{Duration, Rate};

/// A parameter that a scheme declares.
#[derive(Debug)]
pub struct Param {
    /// The name, as in `scheme:name=value`. If a scheme's only parameter has an empty name, its
    /// value is all text after the scheme: `scheme:value`.
    pub name: &'static str,
    /// A description in one line.
    pub help: &'static str,
    /// The allowed values, and the default.
    pub kind: Kind,
}

impl Param {
    /// Must the user give a value?
    pub fn is_required(&self) -> bool {
        matches!(self.kind, Kind::Loaded { default: None, .. })
    }

    /// The default value, or an error.
    pub(super) fn load_default(&self) -> Result<Value, String> {
        match self.kind {
            Kind::Loaded {
                default: Some(text),
                ..
            } => self.kind.read(text),
            _ => Err(format!("needs {}, {}", self.name, self.kind)),
        }
    }
}

/// The allowed values of a parameter. Numbers have a default and an inclusive range.
#[derive(Debug)]
pub enum Kind {
    /// A plain number.
    Number {
        /// The default.
        default: f64,
        /// The smallest allowed value.
        min: f64,
        /// The largest allowed value.
        max: f64,
    },
    /// A whole number.
    Count {
        /// The default.
        default: u64,
        /// The smallest allowed value.
        min: u64,
        /// The largest allowed value.
        max: u64,
    },
    /// A time, written `20ms` or `10s`.
    Time {
        /// The default.
        default: Duration,
        /// The smallest allowed value.
        min: Duration,
        /// The largest allowed value.
        max: Duration,
    },
    /// A rate, written `12Mbps`.
    Rate {
        /// The default.
        default: Rate,
        /// The smallest allowed value.
        min: Rate,
        /// The largest allowed value.
        max: Rate,
    },
    /// One of several words; the first is the default.
    Choice(&'static [&'static str]),
    /// `off` or `on`; `off` is the default. A scheme with it off is the same as one without it.
    Switch,
    /// Something that is loaded from the value's text, such as a model's folder.
    Loaded {
        /// A description of the allowed text.
        what: &'static str,
        /// The default text; `None` if the user has to give one.
        default: Option<&'static str>,
        /// Loads it. The error is one line.
        load: fn(&str) -> Result<Loaded, String>,
    },
}

impl Kind {
    /// The nearest allowed value to a plain number: a time in seconds, a rate in bit/s. For words
    /// and loaded values the number stays as it is.
    pub fn within(&self, value: f64) -> f64 {
        match *self {
            Kind::Number { min, max, .. } => value.clamp(min, max),
            Kind::Count { min, max, .. } => libm::round(value).clamp(min as f64, max as f64),
            Kind::Time { min, max, .. } => value.clamp(min.as_secs_f64(), max.as_secs_f64()),
            Kind::Rate { min, max, .. } => value.clamp(min.as_bps() as f64, max.as_bps() as f64),
            Kind::Choice(_) | Kind::Switch | Kind::Loaded { .. } => value,
        }
    }

    /// The default as a plain number: a time in seconds, a rate in bit/s. NaN for words and loaded
    /// values.
    pub fn default_number(&self) -> f64 {
        match *self {
            Kind::Number { default, .. } => default,
            Kind::Count { default, .. } => default as f64,
            Kind::Time { default, .. } => default.as_secs_f64(),
            Kind::Rate { default, .. } => default.as_bps() as f64,
            Kind::Choice(_) | Kind::Switch | Kind::Loaded { .. } => f64::NAN,
        }
    }

    /// Reads `text`. The error is one line.
    pub(super) fn read(&self, text: &str) -> Result<Value, String> {
        if let Kind::Loaded { load, .. } = self {
            return load(text)
                .map(Value::Loaded)
                .map_err(|e| format!("is refused: {e}"));
        }
        self.read_plain(text)
            .ok_or_else(|| format!("must be {self}"))
    }

    fn read_plain(&self, text: &str) -> Option<Value> {
        let (number, unit) = split_unit(text)?;
        match *self {
            Kind::Number { min, max, .. } => {
                (unit.is_empty() && (min..=max).contains(&number)).then_some(Value::Number(number))
            }
            Kind::Count { min, max, .. } => {
                let n = text.parse().ok()?;
                (min..=max).contains(&n).then_some(Value::Count(n))
            }
            Kind::Time { min, max, .. } => {
                let d = Duration::from_secs_f64(number * seconds(unit)?);
                (number >= 0.0 && (min..=max).contains(&d)).then_some(Value::Time(d))
            }
            Kind::Rate { min, max, .. } => {
                let r = Rate::from_bps_f64(number * bits_per_second(unit)?);
                (number >= 0.0 && (min..=max).contains(&r)).then_some(Value::Rate(r))
            }
            Kind::Choice(words) => words.iter().find(|w| **w == text).map(|w| Value::Choice(w)),
            Kind::Switch => match text {
                "off" => Some(Value::Switch(false)),
                "on" => Some(Value::Switch(true)),
                _ => None,
            },
            Kind::Loaded { .. } => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Number { min, max, .. } => write!(f, "a number from {min} to {max}"),
            Kind::Count { min, max, .. } => write!(f, "a whole number from {min} to {max}"),
            Kind::Time { min, max, .. } => {
                write!(f, "a time from {min:?} to {max:?}, such as 20ms")
            }
            Kind::Rate { min, max, .. } => {
                write!(f, "a rate from {min:?} to {max:?}, such as 12Mbps")
            }
            Kind::Choice(words) => write!(f, "one of {}", words.join(", ")),
            Kind::Switch => f.write_str("off or on"),
            Kind::Loaded { what, .. } => f.write_str(what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_or_rate_below_zero_is_refused_where_zero_is_allowed() {
        let time = Kind::Time {
            default: Duration::ZERO,
            min: Duration::ZERO,
            max: Duration::from_secs(1),
        };
        let rate = Kind::Rate {
            default: Rate::ZERO,
            min: Rate::ZERO,
            max: Rate::from_bps(1_000_000),
        };
        for (kind, right, wrong) in [(&time, "0ms", "-5ms"), (&rate, "0Mbps", "-5kbps")] {
            assert!(kind.read(right).is_ok(), "{right}");
            let error = kind.read(wrong).expect_err(wrong);
            assert_eq!(error, format!("must be {kind}"));
        }
    }
}
