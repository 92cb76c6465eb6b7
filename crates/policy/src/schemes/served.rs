//! A learned scheme as an agent outside the transport serves it.

use std::sync::Arc;

use headway_cc::{Param, Registry, SchemeError, Selection, Setup, Values};
use headway_fixed::Int8;

use super::SCHEMES;
use crate::model::Model;
use crate::{AgentSpec, Policy};

/// A learned scheme whose flows somebody else carries: which agent, and who decides for a flow.
#[derive(Clone, Debug)]
pub struct Served {
    spec: String,
    model: Arc<Model>,
    model_id: String,
    learning: Option<Learning>,
}

/// How a policy goes on learning in use.
#[derive(Clone, Copy, Debug)]
struct Learning {
    weights: [f64; 2],
    epsilon: f64,
}

impl Served {
    /// Reads a scheme as `headway bench --schemes` does: `owl`, `owl:online=true`, `learned:model=DIR`; without what only a
    /// simulated flow has.
    ///
    /// # Errors
    /// [`SchemeError`]: no such learned scheme, no such model, or a parameter that means nothing to whoever serves it.
    pub fn read(spec: &str) -> Result<Served, SchemeError> {
        let selection = Registry::new(SCHEMES).select(spec)?;
        check(&selection)?;
        let Selection { scheme, values, .. } = selection;
        let param = |name: &str| scheme.params.iter().find(|p| p.name == name);
        let missing = || SchemeError(format!("'{spec}' runs no model"));
        let model = values.loaded::<Model>(param("model").ok_or_else(missing)?);
        Ok(Served {
            spec: spec.to_owned(),
            model_id: model.id(),
            model,
            learning: learning(&values, param),
        })
    }

    /// As it was written.
    pub fn spec(&self) -> &str {
        &self.spec
    }

    /// The model's name and what it holds, in short.
    pub fn model_id(&self) -> &str {
        &self.model_id
    }

    /// What it sees and does.
    pub fn agent(&self) -> &AgentSpec {
        &self.model.card().agent
    }

    /// What decides, if that is in whole numbers and may be evaluated where the flow is.
    pub fn int8(&self) -> Option<&Int8> {
        self.model.int8()
    }

    /// Does it go on learning in use?
    pub fn is_learning(&self) -> bool {
        self.learning.is_some()
    }

    /// Who decides for a flow. One that goes on learning goes on from `learned`, if that is of its size.
    ///
    /// # Errors
    /// None for a model that was loaded.
    pub fn policy(
        &self,
        setup: &Setup,
        learned: Option<&[f32]>,
    ) -> Result<Box<dyn Policy>, SchemeError> {
        let Some(Learning { weights, epsilon }) = self.learning else {
            return Ok(Box::new(self.model.policy()));
        };
        let policy = self.model.learning_policy(setup, weights, epsilon);
        let mut policy = policy.map_err(|e| SchemeError(e.to_string()))?;
        if let Some(learned) = learned {
            policy.go_on_from(learned);
        }
        Ok(Box::new(policy))
    }
}

/// That nothing is asked for which is simulated. `guard=on` may be said: it is.
fn check(selection: &Selection) -> Result<(), SchemeError> {
    let spec = &selection.spec;
    let refused = |why: &str| Err(SchemeError(format!("scheme '{spec}': {why}")));
    if selection.digests.is_some() {
        return refused(
            "digests are simulated flows'; of these the report interval says how many acknowledgements make a record",
        );
    }
    for given in spec.split(':').skip(1) {
        if given.starts_with("latency=") {
            return refused(
                "'latency' is a simulated agent's: here answers take what they take; leave it out",
            );
        }
        if given == "guard=off" {
            return refused("here the guard watches every flow; leave 'guard=off' out");
        }
    }
    Ok(())
}

fn learning<'a>(values: &Values, param: impl Fn(&str) -> Option<&'a Param>) -> Option<Learning> {
    let is_on = values.choice(param("online")?) == "true";
    is_on.then_some(())?;
    Some(Learning {
        weights: [
            values.number(param("delta")?),
            values.number(param("beta")?),
        ],
        epsilon: values.number(param("epsilon")?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_a_simulated_flow_has_is_refused() {
        for (spec, hint) in [
            ("owl:latency=10ms", "'latency' is a simulated agent's"),
            ("owl:online=true:latency=26us", "leave it out"),
            ("aurora:guard=off", "leave 'guard=off' out"),
            ("batched-owl:interval=10ms", "the report interval"),
        ] {
            let error = Served::read(spec).expect_err(spec).to_string();
            let is_line = error.contains(spec) && !error.contains('\n');
            assert!(is_line && error.contains(hint), "{error}");
        }
        let served = Served::read("owl:guard=on").expect("it is guarded");
        assert_eq!(served.spec(), "owl:guard=on");
    }
}
