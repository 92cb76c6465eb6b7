//! The values of a scheme's parameters.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::{Kind, Param};
use crate::{Duration, Rate};

/// The content of a [`Kind::Loaded`] parameter.
#[derive(Clone)]
pub struct Loaded {
    /// The id in a scheme's canonical spelling. The same content has the same id.
    pub id: String,
    /// The content, whose type its scheme knows.
    pub content: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)
    }
}

/// The value of one parameter.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Number(f64),
    Count(u64),
    Time(Duration),
    Rate(Rate),
    Choice(&'static str),
    Switch(bool),
    Loaded(Loaded),
    /// The user gave no value for a parameter without a default.
    Missing,
}

impl fmt::Display for Value {
    /// Times are written in seconds, rates in bit/s.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => write!(f, "{number}"),
            Value::Count(count) => write!(f, "{count}"),
            Value::Time(time) => write!(f, "{}s", time.as_secs_f64()),
            Value::Rate(rate) => write!(f, "{}bps", rate.as_bps()),
            Value::Choice(word) => f.write_str(word),
            Value::Switch(is_on) => f.write_str(if *is_on { "on" } else { "off" }),
            Value::Loaded(loaded) => f.write_str(&loaded.id),
            Value::Missing => Ok(()),
        }
    }
}

/// The values of a scheme's parameters: those that the user wrote, and defaults for the rest.
#[derive(Clone, Debug)]
pub struct Values(pub(super) Vec<(&'static Param, Value)>);

impl Values {
    /// All defaults.
    pub fn defaults(params: &'static [Param]) -> Values {
        let value = |p: &Param| match p.kind {
            Kind::Number { default, .. } => Value::Number(default),
            Kind::Count { default, .. } => Value::Count(default),
            Kind::Time { default, .. } => Value::Time(default),
            Kind::Rate { default, .. } => Value::Rate(default),
            Kind::Choice(words) => Value::Choice(words[0]),
            Kind::Switch => Value::Switch(false),
            Kind::Loaded { .. } => Value::Missing,
        };
        Values(params.iter().map(|p| (p, value(p))).collect())
    }

    fn get(&self, param: &Param) -> &Value {
        self.0
            .iter()
            .find(|(p, _)| p.name == param.name)
            .map(|(_, v)| v)
            .unwrap_or_else(|| panic!("parameter {} is not declared by its scheme", param.name))
    }

    /// The value of a [`Kind::Number`] parameter.
    pub fn number(&self, param: &Param) -> f64 {
        match self.get(param) {
            Value::Number(n) => *n,
            other => panic!("parameter {} is {other:?}, not a number", param.name),
        }
    }

    /// The value of a [`Kind::Count`] parameter.
    pub fn count(&self, param: &Param) -> u64 {
        match self.get(param) {
            Value::Count(n) => *n,
            other => panic!("parameter {} is {other:?}, not a whole number", param.name),
        }
    }

    /// The value of a [`Kind::Time`] parameter.
    pub fn time(&self, param: &Param) -> Duration {
        match self.get(param) {
            Value::Time(d) => *d,
            other => panic!("parameter {} is {other:?}, not a time", param.name),
        }
    }

    /// The value of a [`Kind::Rate`] parameter.
    pub fn rate(&self, param: &Param) -> Rate {
        match self.get(param) {
            Value::Rate(r) => *r,
            other => panic!("parameter {} is {other:?}, not a rate", param.name),
        }
    }

    /// The value of a [`Kind::Switch`] parameter.
    pub fn is_on(&self, param: &Param) -> bool {
        match self.get(param) {
            Value::Switch(is_on) => *is_on,
            other => panic!("parameter {} is {other:?}, not a switch", param.name),
        }
    }

    /// The value of a [`Kind::Choice`] parameter.
    pub fn choice(&self, param: &Param) -> &'static str {
        match self.get(param) {
            Value::Choice(w) => w,
            other => panic!("parameter {} is {other:?}, not a choice", param.name),
        }
    }

    /// The content of a [`Kind::Loaded`] parameter.
    ///
    /// # Panics
    /// If it has another type.
    pub fn loaded<T: Any + Send + Sync>(&self, param: &Param) -> Arc<T> {
        match self.get(param) {
            Value::Loaded(loaded) => Arc::clone(&loaded.content)
                .downcast()
                .unwrap_or_else(|_| panic!("parameter {} is of another type", param.name)),
            other => panic!("parameter {} is {other:?}, not loaded", param.name),
        }
    }
}
