//! The networks of an actor and its critics.

use headway_cc::Stream;

use super::PalSpec;
use super::gaussian::softplus_from_one;
use crate::nn::{Activation, NetError, NetKind, NetSpec, Network, State};

/// The largest number of outputs of all networks together.
pub(super) const MAX_OUTPUTS: usize = 8;

/// The specs of the networks: the actor, with mean and standard deviation, then a critic for each
/// group of rewards that are predicted together (Fig. 4: rewards of like size share their layers).
pub(super) fn specs(spec: &PalSpec, inputs: usize, groups: &[usize]) -> Vec<NetSpec> {
    let net = |units: usize, outputs: usize| NetSpec {
        kind: NetKind::Gru,
        layers: vec![inputs, units, outputs],
        activations: vec![Activation::Identity],
        recurrent_layers: None,
        mask: None,
    };
    let critics = groups.iter().map(|n| net(spec.critic_units, *n));
    std::iter::once(net(spec.actor_units, 2))
        .chain(critics)
        .collect()
}

/// A network of random weights, as PyTorch draws them: uniform, up to one over the root of the
/// number of inputs (of a GRU, of its units). The last layer's weights are a tenth of that. So the
/// first actions depend on randomness alone, and the first predictions equal the units.
pub(super) fn random(spec: &NetSpec, stream: &mut Stream) -> Result<Network, NetError> {
    Network::new(spec, &mut |name, shape| {
        let (units, scale) = match name.starts_with("gru") {
            true => (spec.layers[1], 1.0),
            false => (spec.layers[1], 0.1),
        };
        let bound = scale / (units as f64).sqrt();
        let size: usize = shape.iter().product();
        Ok((0..size)
            .map(|_| stream.range(-bound, bound) as f32)
            .collect())
    })
}

/// The critics' predictions: their outputs as positive multiples of the units.
#[inline]
pub(super) fn values<const N: usize>(outputs: &[f32], units: &[f32; N]) -> [f32; N] {
    std::array::from_fn(|n| units[n] * softplus_from_one(outputs[2 + n]))
}

/// The memories of the networks.
#[derive(Clone, Debug)]
pub(super) struct Memories(pub Vec<State>);

impl Memories {
    pub fn of(nets: &[Network]) -> Memories {
        Memories(nets.iter().map(Network::state).collect())
    }

    pub fn copy_from(&mut self, other: &Memories) {
        for (mine, other) in self.0.iter_mut().zip(&other.0) {
            mine.memory_mut().copy_from_slice(other.memory());
        }
    }

    pub fn reset(&mut self) {
        self.0.iter_mut().for_each(State::reset);
    }
}
