//! A network, its parameters, and its outputs.

use pulp::{Simd, WithSimd};

use super::affine::Affine;
use super::dense::Dense;
use super::gru::Gru;
use super::layer::Layer;
use super::lstm::Lstm;
use super::mask::Mask;
use super::{InstructionSet, NetError, NetKind, NetSpec};

/// A network with its parameters.
#[derive(Clone, Debug)]
pub struct Network {
    spec: NetSpec,
    pub(super) layers: Vec<Layer>,
    /// The parameters of one layer after another, as [`Affine`] orders them.
    parameters: Vec<f32>,
    pub(super) instruction_set: InstructionSet,
}

/// Gives the numbers of the tensor with that name and shape, row by row.
pub type TensorSource<'a> = dyn FnMut(&str, &[usize]) -> Result<Vec<f32>, NetError> + 'a;

/// What a network remembers from one step to the next, and its work space.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(super) memory: Vec<f32>,
    record: Vec<f32>,
}

impl State {
    /// The outputs of each recurrent layer, each followed by an LSTM's cells.
    pub fn memory(&self) -> &[f32] {
        &self.memory
    }

    /// The memory, for changes. All zeros is the state of a new flow.
    pub fn memory_mut(&mut self) -> &mut [f32] {
        &mut self.memory
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.memory.fill(0.0);
    }
}

impl Network {
    /// Builds a network. `source` supplies each tensor by name and shape ([`NetSpec::tensors`]).
    ///
    /// # Errors
    /// [`NetError`] if the spec cannot be built, or if a tensor is missing, has another size, or
    /// contains a number that is not finite.
    pub fn new(spec: &NetSpec, source: &mut TensorSource<'_>) -> Result<Network, NetError> {
        spec.check()?;
        if spec.kind == NetKind::Int8 {
            let text = "net: an int8 network is no network of floating point; load its model";
            return Err(NetError(text.to_owned()));
        }
        let (layers, size) = layers(spec);
        let mut parameters = vec![0.0; size];
        let mut places = layers.iter().flat_map(Layer::places);
        for (name, shape) in spec.tensors() {
            let values = source(&name, &shape)?;
            let (found, size): (usize, usize) = (values.len(), shape.iter().product());
            if found != size {
                return Err(NetError(format!(
                    "tensor {name}: {found} numbers, must be {size} ({shape:?})"
                )));
            }
            if let Some(at) = values.iter().position(|v| !v.is_finite()) {
                return Err(NetError(format!(
                    "tensor {name}: number {at} is {}, must be finite",
                    values[at]
                )));
            }
            for (value, place) in values.iter().zip(&mut places) {
                parameters[place] = *value;
            }
        }
        Ok(Network {
            spec: spec.clone(),
            layers,
            parameters,
            instruction_set: InstructionSet::best(),
        })
    }

    /// The network's spec.
    pub fn spec(&self) -> &NetSpec {
        &self.spec
    }

    /// The same network on another instruction set. Its outputs are the same, only their speed
    /// differs.
    pub fn with_instruction_set(mut self, instruction_set: InstructionSet) -> Network {
        self.instruction_set = instruction_set;
        self
    }

    /// The parameters in an internal order, with zeros between them as padding. Gradients have the
    /// same order. See [`Network::tensors`].
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// The parameters, for changes.
    pub fn parameters_mut(&mut self) -> &mut [f32] {
        &mut self.parameters
    }

    /// Splits parameters, or a gradient, into the tensors of [`NetSpec::tensors`]: name, shape,
    /// numbers row by row.
    ///
    /// # Panics
    /// If there are not as many `values` as [parameters](Network::parameters).
    pub fn tensors(&self, values: &[f32]) -> Vec<(String, Vec<usize>, Vec<f32>)> {
        assert_eq!(values.len(), self.parameters.len(), "number of parameters");
        let mut places = self.layers.iter().flat_map(Layer::places);
        let tensor = |(name, shape): (String, Vec<usize>)| {
            let size = shape.iter().product();
            let values = places.by_ref().take(size).map(|at| values[at]).collect();
            (name, shape, values)
        };
        self.spec.tensors().into_iter().map(tensor).collect()
    }

    /// The state of a new flow.
    pub fn state(&self) -> State {
        State {
            memory: vec![0.0; self.layers.iter().map(Layer::memory).sum()],
            record: vec![0.0; self.record()],
        }
    }

    /// The size of a step's record: the inputs, and each layer's record.
    pub(super) fn record(&self) -> usize {
        self.spec.inputs() + self.layers.iter().map(Layer::record).sum::<usize>()
    }

    /// The outputs for `input`. A recurrent network advances by one step. The call does not
    /// allocate.
    ///
    /// # Panics
    /// If the lengths are not those of the spec, or the state is that of a network of another spec.
    pub fn forward(&self, state: &mut State, input: &[f32], output: &mut [f32]) {
        self.step(&mut state.memory, &mut state.record, input);
        output.copy_from_slice(&state.record[state.record.len() - output.len()..]);
    }

    /// Computes one step and writes everything to `record`: the inputs, then each layer's record.
    pub(super) fn step(&self, memory: &mut [f32], record: &mut [f32], input: &[f32]) {
        assert_eq!(input.len(), self.spec.inputs(), "number of inputs");
        self.instruction_set.run(Step {
            network: self,
            memory,
            record,
            input,
        });
    }
}

struct Step<'a> {
    network: &'a Network,
    memory: &'a mut [f32],
    record: &'a mut [f32],
    input: &'a [f32],
}

impl WithSimd for Step<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Network {
            layers, parameters, ..
        } = self.network;
        let (mut x, mut rest) = self.record.split_at_mut(self.input.len());
        let mut memory = self.memory;
        x.copy_from_slice(self.input);
        for layer in layers {
            let (mine, after) = rest.split_at_mut(layer.record());
            let (remembered, later) = memory.split_at_mut(layer.memory());
            layer.forward(simd, parameters, x, remembered, mine);
            x = &mut mine[layer.record() - layer.outputs()..];
            (rest, memory) = (after, later);
        }
    }
}

/// The layers, and the length of the array of their parameters.
fn layers(spec: &NetSpec) -> (Vec<Layer>, usize) {
    let mut end = 0;
    let layer = |(n, sizes): (usize, &[usize])| {
        let (inputs, units) = (sizes[0], sizes[1]);
        if let Some(n) = n.checked_sub(spec.recurrent()) {
            let sums = Affine::new(inputs, units, &mut end);
            let activation = spec.activations[n];
            return Layer::Dense(Dense { sums, activation });
        }
        let sums = spec.kind.gates() * units;
        let input = Affine::new(inputs, sums, &mut end);
        let hidden = Affine::new(units, sums, &mut end);
        match spec.kind {
            NetKind::Lstm => Layer::Lstm(Lstm {
                units,
                input,
                hidden,
            }),
            _ => Layer::Gru(Gru {
                units,
                input,
                hidden,
            }),
        }
    };
    let mut layers: Vec<Layer> = spec.layers.windows(2).enumerate().map(layer).collect();
    // The mask's parameters come last, so that the other layers' places do not depend on it.
    if let Some(mask) = &spec.mask {
        layers.insert(0, Layer::Mask(Mask::new(mask, spec.inputs(), &mut end)));
    }
    (layers, end)
}
