//! Who says what a flow is to do.

use std::sync::Arc;

use headway_cc::Setup;
use headway_policy::schemes::{Experience, FlowPolicy, PolicySpec};

use crate::error::{Error, Result};

/// Who says what a flow is to do.
#[derive(Debug)]
pub enum Driver {
    /// A policy.
    Policy(Arc<PolicySpec>, FlowPolicy),
    /// Somebody who sets parameters from time to time: their names, and their values.
    Tuner(Vec<String>, Vec<f64>),
    /// Nobody: Cubic controls the flow, and nothing has failed.
    Nobody,
}

impl Driver {
    /// A policy, which may go on from what was learned before.
    ///
    /// # Errors
    /// One line, if it cannot be had.
    pub fn of(
        served: Arc<PolicySpec>,
        setup: &Setup,
        learned: Option<&Experience>,
    ) -> Result<Driver> {
        let carried = served.carried(setup, learned);
        let carried = carried.map_err(|e| Error::Failed(e.to_string()))?;
        Ok(Driver::Policy(served, carried))
    }

    /// The policy that it is of.
    pub fn served(&self) -> Option<&PolicySpec> {
        match self {
            Driver::Policy(served, _) => Some(served),
            Driver::Tuner(..) | Driver::Nobody => None,
        }
    }

    /// That policy, as it decides for this flow.
    pub fn carried(&self) -> Option<&FlowPolicy> {
        match self {
            Driver::Policy(_, carried) => Some(carried),
            Driver::Tuner(..) | Driver::Nobody => None,
        }
    }

    /// Is it of this model, told to decide in the same way?
    pub fn is_of(&self, served: &PolicySpec) -> bool {
        let own = (self.served()).map(|own| (own.spec(), own.model_id()));
        own == Some((served.spec(), served.model_id()))
    }

    /// Takes parameters of a tuner. Is it one?
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
