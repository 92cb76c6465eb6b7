//! Saves an agent's weights in a file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::weights::Moments;
use super::{PalSpec, Weights, nets};
use crate::model::sha256;
use crate::nn::{NetError, Network, Optimizer};

/// What an agent keeps over a restart: the weights with their optimisers' state, and the memories
/// of its networks. Actions that waited for feedback are not part of it.
///
/// The text has one line with the format and the SHA-256 of the rest, then JSON that keeps every
/// bit.
#[derive(Clone, Debug)]
pub struct Checkpoint<const N: usize> {
    /// The weights.
    pub weights: Weights<N>,
    /// The units of each recurrent layer: the actor's, then the critics'.
    pub memories: Vec<Vec<f32>>,
}

/// The JSON part.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    spec: PalSpec,
    updates: u64,
    moments: Moments,
    /// The actor's tensors, then the critics'.
    nets: Vec<BTreeMap<String, Vec<f32>>>,
    optimizers: Vec<Optimizer>,
    memories: Vec<Vec<f32>>,
}

const FORMAT: &str = "headway-learner 1 ";

impl<const N: usize> Checkpoint<N> {
    /// Writes the checkpoint as text.
    pub fn write(&self) -> String {
        let weights = &self.weights;
        let tensors = |net: &Network| {
            let tensors = net.tensors(net.parameters()).into_iter();
            tensors.map(|(name, _, values)| (name, values)).collect()
        };
        let body = Body {
            spec: weights.spec().clone(),
            updates: weights.updates,
            moments: weights.moments,
            nets: weights.nets.iter().map(tensors).collect(),
            optimizers: weights.optimizers.clone(),
            memories: self.memories.clone(),
        };
        let body = serde_json::to_string(&body).expect("plain data");
        format!("{FORMAT}{}\n{body}\n", sha256(body.as_bytes()))
    }

    /// Reads a text of [`write`](Self::write), for observations of `inputs` numbers and critics of
    /// these `groups` of rewards.
    ///
    /// # Errors
    /// [`NetError`], one line: the text is malformed or incomplete, or was made for another agent.
    pub fn read(text: &str, inputs: usize, groups: &[usize]) -> Result<Checkpoint<N>, NetError> {
        let refuse = |what: &str| NetError(format!("learner's checkpoint: {what}"));
        let head = text.strip_prefix(FORMAT);
        let (sum, body) = head
            .and_then(|rest| rest.split_once('\n'))
            .ok_or_else(|| refuse(&format!("its first line must begin with \"{FORMAT}\"")))?;
        let body = body.strip_suffix('\n').unwrap_or(body);
        if sha256(body.as_bytes()) != sum {
            return Err(refuse("incomplete or changed; copy it again"));
        }
        let body: Body = serde_json::from_str(body).map_err(|e| refuse(&e.to_string()))?;
        body.spec.check()?;
        let specs = nets::specs(&body.spec, inputs, groups);
        if body.nets.len() != specs.len() {
            let (found, right) = (body.nets.len(), specs.len());
            return Err(refuse(&format!("{found} networks, must be {right}")));
        }
        let network = |(spec, tensors): (_, &BTreeMap<String, Vec<f32>>)| {
            let missing = |name: &str| refuse(&format!("tensor {name} is missing"));
            Network::new(spec, &mut |name, _| {
                tensors.get(name).cloned().ok_or_else(|| missing(name))
            })
        };
        let networks = specs.iter().zip(&body.nets).map(network);
        let mut weights = Weights::of(body.spec, networks.collect::<Result<_, _>>()?)?;
        let fits = |(ours, saved): (&Optimizer, &Optimizer)| ours.fits(saved);
        let optimizers = weights.optimizers.iter().zip(&body.optimizers);
        if body.optimizers.len() != specs.len() || !optimizers.clone().all(fits) {
            return Err(refuse(
                "the optimisers do not fit its networks; copy it again",
            ));
        }
        let units = specs.iter().map(|spec| spec.layers[1]);
        let lengths = body.memories.iter().map(Vec::len);
        if !lengths.eq(units) || !body.memories.iter().flatten().all(|x| x.is_finite()) {
            return Err(refuse(
                "the memories do not fit its networks; copy it again",
            ));
        }
        weights.optimizers = body.optimizers;
        (weights.moments, weights.updates) = (body.moments, body.updates);
        Ok(Checkpoint {
            weights,
            memories: body.memories,
        })
    }
}
