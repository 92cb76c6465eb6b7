//! A network that decides.

use std::sync::Arc;

use headway_cc::Probe;

use crate::int8::Quantised;
use crate::nn::{NetSpec, Network, State};
use crate::{AgentSpec, Answer, Interval, Policy};

/// What computes a model's outputs. All flows of the model share it.
#[derive(Clone, Debug)]
pub(super) enum Net {
    /// A network in floating point.
    Float(Arc<Network>),
    /// A network in whole numbers.
    Int8(Arc<Quantised>),
}

/// A model's network with the state of one flow.
///
/// It gives the [neutral answer](Answer::NEUTRAL) if an observation has the wrong size, or if an
/// observation or output is not finite. Results count these answers as `refused_decisions`.
#[derive(Clone, Debug)]
pub struct NetworkPolicy {
    net: Net,
    inputs: usize,
    agent: Arc<AgentSpec>,
    /// The state of a network in floating point.
    state: State,
    outputs: Vec<f32>,
    refused: u64,
}

impl NetworkPolicy {
    /// The policy of a flow that has just begun. The network has the inputs and outputs of `spec`,
    /// which fit `agent`.
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

    /// The network's outputs for the last observation.
    pub fn outputs(&self) -> &[f32] {
        &self.outputs
    }

    /// The number of neutral answers to numbers that were not finite or to a wrong size.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Does it compute in whole numbers, with the same bits on every machine?
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.net, Net::Int8(_))
    }

    /// The answer, or the neutral one if a size or number is wrong.
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
            // The network's state may not be finite either.
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
