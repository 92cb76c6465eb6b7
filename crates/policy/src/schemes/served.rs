//! A learned scheme as an agent outside the transport serves it.

use std::sync::Arc;

use headway_cc::{Need, Param, Registry, SchemeError, Selection, Setup, Values};
use headway_fixed::Int8;

use super::SCHEMES;
use crate::model::Model;
use crate::{AgentSpec, Policy};

/// A learned scheme whose flows somebody else carries: which agent, and who decides for a flow.
#[derive(Clone, Debug)]
pub struct Served {
    spec: String,
    model: Arc<Model>,
    learning: Option<Learning>,
}

/// How a policy goes on learning in use.
#[derive(Clone, Copy, Debug)]
struct Learning {
    weights: [f64; 2],
    epsilon: f64,
}

impl Served {
    /// Reads a scheme as `headway bench --schemes` does: `owl`, `owl:online=true`, `learned:model=DIR`. What its
    /// `latency` says is ignored: here it takes what it takes.
    ///
    /// # Errors
    /// [`SchemeError`]: no such learned scheme, no such model, or one that asks for every packet.
    pub fn read(spec: &str) -> Result<Served, SchemeError> {
        let Selection { scheme, values, .. } = Registry::new(SCHEMES).select(spec)?;
        if scheme.needs.contains(&Need::PerPacket) {
            return Err(SchemeError(format!(
                "'{spec}' has to hear of every packet, an agent outside the transport does not; give one that runs a model, such as owl"
            )));
        }
        let param = |name: &str| scheme.params.iter().find(|p| p.name == name);
        let missing = || SchemeError(format!("'{spec}' runs no model"));
        let model = values.loaded::<Model>(param("model").ok_or_else(missing)?);
        Ok(Served {
            spec: spec.to_owned(),
            model,
            learning: learning(&values, param),
        })
    }

    /// As it was written.
    pub fn spec(&self) -> &str {
        &self.spec
    }

    /// The model's name and what it holds, in short.
    pub fn model_id(&self) -> String {
        self.model.id()
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

    /// How many parameters what it has learned consists of.
    pub fn parameters(&self) -> usize {
        self.model.parameters()
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
    fn what_learns_from_every_packet_is_refused_in_one_line() {
        for spec in ["rax", "rax-pretrained", "rax-pretrained:model=v1"] {
            let error = Served::read(spec).expect_err("refused").to_string();
            assert!(error.contains("has to hear of every packet"), "{error}");
            assert_eq!(error.lines().count(), 1);
        }
        assert!(Served::read("owl").is_ok());
    }
}
