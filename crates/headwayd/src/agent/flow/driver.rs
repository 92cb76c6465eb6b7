//! What decides for a flow: a policy, a tuner, or neither.

use std::sync::Arc;

use headway_cc::Setup;
use headway_policy::schemes::{Experience, FlowPolicy, PolicySpec};

use crate::error::{Error, Result};

/// What decides for a flow.
#[derive(Debug)]
pub enum Driver {
    /// A policy.
    Policy(Arc<PolicySpec>, FlowPolicy),
    /// A tuner, which sets parameters from time to time: their names, and their values.
    Tuner(Vec<String>, Vec<f64>),
    /// Neither: Cubic controls the flow, and this is not a fallback.
    Nobody,
}

impl Driver {
    /// A policy, which may start from what was learned before.
    ///
    /// # Errors
    /// One line, if the policy cannot be made.
    pub fn of(
        served: Arc<PolicySpec>,
        setup: &Setup,
        learned: Option<&Experience>,
    ) -> Result<Driver> {
        let carried = served.carried(setup, learned);
        let carried = carried.map_err(|e| Error::Failed(e.to_string()))?;
        Ok(Driver::Policy(served, carried))
    }

    /// The policy's spec.
    pub fn served(&self) -> Option<&PolicySpec> {
        match self {
            Driver::Policy(served, _) => Some(served),
            Driver::Tuner(..) | Driver::Nobody => None,
        }
    }

    /// The policy's state for this flow.
    pub fn carried(&self) -> Option<&FlowPolicy> {
        match self {
            Driver::Policy(_, carried) => Some(carried),
            Driver::Tuner(..) | Driver::Nobody => None,
        }
    }

    /// Does it have this model and spec?
    pub fn is_of(&self, served: &PolicySpec) -> bool {
        let own = (self.served()).map(|own| (own.spec(), own.model_id()));
        own == Some((served.spec(), served.model_id()))
    }

    /// Sets parameters if this is a tuner. Returns whether it is.
    pub fn tune(&mut self, settings: &[(&str, f64)]) -> bool {
        let Driver::Tuner(names, values) = self else {
            return false;
        };
        for (name, value) in settings {
            match names.iter().position(|n| n == name) {
                Some(at) => values[at] = *value,
                None => {
                    names.push((*name).to_owned());
                    values.push(*value);
                }
            }
        }
        true
    }
}
