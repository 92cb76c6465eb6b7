//! A network that decides.

use std::sync::Arc;

use headway_cc::Probe;

use crate::int8::Quantised;
use crate::nn::{NetSpec, Network, State};
use crate::{AgentSpec, Answer, Interval, Policy};

/// What computes a model's outputs; flows have it in common.
#[derive(Clone, Debug)]
pub(super) enum Net {
    /// In floating point.
    Float(Arc<Network>),
    /// In whole numbers.
    Int8(Arc<Quantised>),
}

/// A model's network, at work for one flow.
///
/// An observation of the wrong size or with a number that is not finite, and outputs that are not
/// finite, give the [neutral answer](Answer::NEUTRAL); they are counted (`refused_decisions` of
/// results).
#[derive(Clone, Debug)]
pub struct NetworkPolicy {
    net: Net,
    inputs: usize,
    agent: Arc<AgentSpec>,
    /// What a network of floating point remembers.
    state: State,
    outputs: Vec<f32>,
    refused: u64,
}

impl NetworkPolicy {
    /// For a flow that has just begun. The network has the inputs and outputs of `spec`, as many as
    /// `agent` wants.
    pub(super) fn new(net: Net, spec: &NetSpec, agent: Arc<AgentSpec>) -> NetworkPolicy {
        NetworkPolicy {
            state: match &net {
                Net::Float(network) => network.state(),
                Net::Int8(_) => State::default(),
            },
            inputs: spec.inputs(),
            outputs: vec![0.0; spec.outputs()],
            refused: 0,
            net,
            agent,
        }
    }

    /// What the network put out for the last observation.
    pub fn outputs(&self) -> &[f32] {
        &self.outputs
    }

    /// How many decisions were neutral because a number was not finite, or a size wrong.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Does it compute in whole numbers, the same to the last bit anywhere?
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.net, Net::Int8(_))
    }

    /// The answer, unless something is amiss.
    pub(super) fn answer(&mut self, observation: &[f32]) -> Option<Answer> {
        let finite = |numbers: &[f32]| numbers.iter().all(|x| x.is_finite());
        if observation.len() != self.inputs || !finite(observation) {
            return None;
        }
        match &self.net {
            Net::Float(network) => {
                network.forward(&mut self.state, observation, &mut self.outputs);
            }
            Net::Int8(policy) => self.outputs[0] = policy.output(observation),
        }
        if !finite(&self.outputs) {
            // What it remembers may not be finite either.
            self.state.reset();
            return None;
        }
        Some(self.agent.choose(&self.outputs))
    }
}

impl Policy for NetworkPolicy {
    fn decide(&mut self, observation: &[f32], _: &Interval) -> Option<Answer> {
        Some(self.answer(observation).unwrap_or_else(|| {
            self.refused += 1;
            Answer::NEUTRAL
        }))
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.value("refused_decisions", self.refused as f64);
    }
}
