//! A scheme with its parameters' values.

use super::values::Value;
use super::{Registry, Scheme, Setup, Values};
use crate::{Batched, CongestionControl, DigestInterval, Receiver};

/// A scheme with parameter values, such as `cubic:hystart=none`.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The text as the user wrote it. It names the row in tables.
    pub spec: String,
    /// The scheme.
    pub scheme: &'static Scheme,
    /// The values of its parameters.
    pub values: Values,
    /// The interval between digests, for a scheme that gets digests.
    pub digests: Option<DigestInterval>,
}

impl Selection {
    /// Builds the sender's half for one flow.
    pub fn build(&self, setup: &Setup) -> Box<dyn CongestionControl> {
        let controller = (self.scheme.build)(setup, &self.values);
        match self.digests {
            Some(interval) => Box::new(Batched::new(controller, interval)),
            None => controller,
        }
    }

    /// Builds the receiver's half for one flow, if the scheme has one.
    pub fn build_receiver(&self, setup: &Setup) -> Option<Box<dyn Receiver>> {
        self.scheme.receiver.map(|build| build(setup, &self.values))
    }

    /// The id of the trained model that the scheme runs, if any. The same content has the same id.
    pub fn model(&self) -> Option<&str> {
        self.values.0.iter().find_map(|(_, value)| match value {
            Value::Loaded(loaded) => Some(loaded.id.as_str()),
            _ => None,
        })
    }

    /// The scheme with all parameters, in a unique spelling: `copa:delta=0.5`.
    pub fn canonical(&self) -> String {
        let mut spec = self.scheme.name.to_owned();
        for (param, value) in &self.values.0 {
            if param.name.is_empty() {
                spec += &format!(":{value}");
            } else if !matches!(value, Value::Switch(false)) {
                spec += &format!(":{}={value}", param.name);
            }
        }
        match self.digests {
            Some(interval) => format!(
                "{}{spec}:{}={interval}",
                Registry::BATCHED,
                DigestInterval::KEY
            ),
            None => spec,
        }
    }
}
