//! A network that decides.

use std::sync::Arc;

use headway_cc::Probe;

use crate::nn::{Network, State};
use crate::{ActionSpec, Interval, Policy};

/// A model's network, at work for one flow.
///
/// An observation of the wrong size or with a number that is not finite, and outputs that are not finite, give the
/// [neutral answer](ActionSpec::NEUTRAL); they are counted (`refused_decisions` of results).
#[derive(Clone, Debug)]
pub struct NetworkPolicy {
    network: Arc<Network>,
    action: Arc<ActionSpec>,
    state: State,
    outputs: Vec<f32>,
    refused: u64,
}

impl NetworkPolicy {
    /// For a flow that has just begun. The network has as many outputs as `action` wants.
    pub(super) fn new(network: Arc<Network>, action: Arc<ActionSpec>) -> NetworkPolicy {
        NetworkPolicy {
            state: network.state(),
            outputs: vec![0.0; network.spec().outputs()],
            refused: 0,
            network,
            action,
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

    /// The answer, unless something is amiss.
    pub(super) fn answer(&mut self, observation: &[f32]) -> Option<f32> {
        let finite = |numbers: &[f32]| numbers.iter().all(|x| x.is_finite());
        if observation.len() != self.network.spec().inputs() || !finite(observation) {
            return None;
        }
        self.network
            .forward(&mut self.state, observation, &mut self.outputs);
        if !finite(&self.outputs) {
            // What it remembers may not be finite either.
            self.state.reset();
            return None;
        }
        Some(self.action.choose(&self.outputs))
    }
}

impl Policy for NetworkPolicy {
    fn decide(&mut self, observation: &[f32], _: &Interval) -> Option<f32> {
        Some(self.answer(observation).unwrap_or_else(|| {
            self.refused += 1;
            ActionSpec::NEUTRAL
        }))
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.value("refused_decisions", self.refused as f64);
    }
}
