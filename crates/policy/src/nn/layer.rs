//! The layers of networks.

use pulp::Simd;

use super::dense::Dense;
use super::gru::{self, Gru};
use super::lstm::{self, Lstm};
use super::mask::Mask;

/// One layer: where its parameters are, and what it computes. A step leaves a record, which ends
/// with its outputs.
#[derive(Clone, Debug)]
pub(super) enum Layer {
    Mask(Mask),
    Dense(Dense),
    Gru(Gru),
    Lstm(Lstm),
}

/// What the backward pass of a step reads and writes.
pub(super) struct Back<'a> {
    pub parameters: &'a [f32],
    /// The step's inputs.
    pub x: &'a [f32],
    /// The record of the step.
    pub record: &'a [f32],
    /// The gradient of the outputs, which is overwritten.
    pub dy: &'a mut [f32],
    /// The gradient of the memory after the step. The pass replaces it by that of the memory
    /// before.
    pub dmemory: &'a mut [f32],
    /// Work space.
    pub work: &'a mut [f32],
    /// The parameters' gradient, to which the pass adds.
    pub gradient: &'a mut [f32],
    /// The inputs' gradient, to which the pass adds.
    pub dx: &'a mut [f32],
}

impl Layer {
    pub fn inputs(&self) -> usize {
        match self {
            Layer::Mask(mask) => mask.inputs,
            Layer::Dense(dense) => dense.sums.inputs,
            Layer::Gru(gru) => gru.input.inputs,
            Layer::Lstm(lstm) => lstm.input.inputs,
        }
    }

    pub fn outputs(&self) -> usize {
        match self {
            Layer::Mask(mask) => mask.inputs,
            Layer::Dense(dense) => dense.sums.outputs,
            Layer::Gru(gru) => gru.units,
            Layer::Lstm(lstm) => lstm.units,
        }
    }

    /// The places of its parameters, row by row in the order of `NetSpec::tensors`.
    pub fn places(&self) -> Vec<usize> {
        let (input, hidden) = match self {
            Layer::Mask(mask) => return mask.places().collect(),
            Layer::Dense(Dense { sums, .. }) => {
                return sums.weights().chain(sums.biases()).collect();
            }
            Layer::Gru(Gru { input, hidden, .. }) | Layer::Lstm(Lstm { input, hidden, .. }) => {
                (input, hidden)
            }
        };
        let weights = input.weights().chain(hidden.weights());
        weights
            .chain(input.biases())
            .chain(hidden.biases())
            .collect()
    }

    /// The size of its memory.
    pub fn memory(&self) -> usize {
        match self {
            Layer::Mask(_) | Layer::Dense(_) => 0,
            Layer::Gru(gru) => gru.units,
            Layer::Lstm(lstm) => 2 * lstm.units,
        }
    }

    /// The size of a step's record.
    pub fn record(&self) -> usize {
        match self {
            Layer::Mask(mask) => mask.inputs,
            Layer::Dense(dense) => dense.sums.outputs,
            Layer::Gru(gru) => gru::RECORD * gru.units,
            Layer::Lstm(lstm) => lstm::RECORD * lstm.units,
        }
    }

    /// The work space of the backward pass.
    pub fn work(&self) -> usize {
        match self {
            Layer::Mask(_) | Layer::Dense(_) => 0,
            Layer::Gru(gru) => gru::WORK * gru.units,
            Layer::Lstm(lstm) => lstm::WORK * lstm.units,
        }
    }

    #[inline(always)]
    pub fn forward<S: Simd>(
        &self,
        simd: S,
        parameters: &[f32],
        x: &[f32],
        memory: &mut [f32],
        record: &mut [f32],
    ) {
        match self {
            Layer::Mask(mask) => mask.forward(parameters, x, record),
            Layer::Dense(dense) => dense.forward(simd, parameters, x, record),
            Layer::Gru(gru) => gru.forward(simd, parameters, x, memory, record),
            Layer::Lstm(lstm) => lstm.forward(simd, parameters, x, memory, record),
        }
    }

    #[inline(always)]
    pub fn backward(&self, back: Back<'_>) {
        match self {
            Layer::Mask(mask) => mask.backward(back),
            Layer::Dense(dense) => dense.backward(back),
            Layer::Gru(gru) => gru.backward(back),
            Layer::Lstm(lstm) => lstm.backward(back),
        }
    }
}
