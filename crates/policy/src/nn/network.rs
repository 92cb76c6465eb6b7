//! A network, its parameters, and its answers.

use super::affine::Affine;
use super::dense::Dense;
use super::gru::Gru;
use super::layer::Layer;
use super::lstm::Lstm;
use super::{InstructionSet, NetError, NetKind, NetSpec};

/// A network with its parameters.
#[derive(Clone, Debug)]
pub struct Network {
    spec: NetSpec,
    pub(super) layers: Vec<Layer>,
    /// Tensor after tensor, as [`NetSpec::tensors`] lists them, but weights input by input.
    parameters: Vec<f32>,
    pub(super) instruction_set: InstructionSet,
}

/// Gives the numbers of the tensor with that name and shape, row by row.
pub type TensorSource<'a> = dyn FnMut(&str, &[usize]) -> Result<Vec<f32>, NetError> + 'a;

/// What a network remembers from one answer to the next, and room to work in.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) memory: Vec<f32>,
    record: Vec<f32>,
}

impl State {
    /// What it remembers: each recurrent layer's outputs, and behind them an LSTM's cells.
    pub fn memory(&self) -> &[f32] {
        &self.memory
    }

    /// The same, to be changed; all zeros is the state of a new flow.
    pub fn memory_mut(&mut self) -> &mut [f32] {
        &mut self.memory
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.memory.fill(0.0);
    }
}

impl Network {
    /// A network of the given tensors: `source` is asked for each by name and shape ([`NetSpec::tensors`]).
    ///
    /// # Errors
    /// [`NetError`] if the spec cannot be built, or if a tensor is missing, has another size, or has a number that
    /// is not finite.
    pub fn new(spec: &NetSpec, source: &mut TensorSource<'_>) -> Result<Network, NetError> {
        spec.check()?;
        let mut parameters = Vec::new();
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
            match shape[..] {
                [outputs, inputs] => parameters.extend(transposed(&values, outputs, inputs)),
                _ => parameters.extend(values),
            }
        }
        Ok(Network {
            spec: spec.clone(),
            layers: layers(spec),
            parameters,
            instruction_set: InstructionSet::best(),
        })
    }

    /// What it is made of.
    pub fn spec(&self) -> &NetSpec {
        &self.spec
    }

    /// The same network, computed with another instruction set: the same numbers, sooner or later.
    pub fn with_instruction_set(mut self, instruction_set: InstructionSet) -> Network {
        self.instruction_set = instruction_set;
        self
    }

    /// Its parameters, in an order of its own; gradients and optimisers have the same. See [`Network::tensors`].
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// The same, to be learned.
    pub fn parameters_mut(&mut self) -> &mut [f32] {
        &mut self.parameters
    }

    /// Parameters, or a gradient, as the tensors of [`NetSpec::tensors`]: name, shape, numbers row by row.
    ///
    /// # Panics
    /// If there are not as many `values` as [parameters](Network::parameters).
    pub fn tensors(&self, values: &[f32]) -> Vec<(String, Vec<usize>, Vec<f32>)> {
        assert_eq!(values.len(), self.parameters.len(), "number of parameters");
        let mut rest = values;
        let tensor = |(name, shape): (String, Vec<usize>)| {
            let (values, after) = rest.split_at(shape.iter().product());
            rest = after;
            let values = match shape[..] {
                [outputs, inputs] => transposed(values, inputs, outputs).collect(),
                _ => values.to_vec(),
            };
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

    /// How many numbers a step leaves behind: the inputs, and each layer's.
    pub(super) fn record(&self) -> usize {
        self.spec.inputs() + self.layers.iter().map(Layer::record).sum::<usize>()
    }

    /// Its outputs for `input`; a recurrent network moves on by one step. Allocates nothing.
    ///
    /// # Panics
    /// If the lengths are not those of the spec, or the state is that of a network of another spec.
    pub fn forward(&self, state: &mut State, input: &[f32], output: &mut [f32]) {
        self.step(&mut state.memory, &mut state.record, input);
        output.copy_from_slice(&state.record[state.record.len() - output.len()..]);
    }

    /// One step, with all that it computes in `record`: the inputs, then each layer's record.
    pub(super) fn step(&self, memory: &mut [f32], record: &mut [f32], input: &[f32]) {
        assert_eq!(input.len(), self.spec.inputs(), "number of inputs");
        self.instruction_set.run(
            #[inline(always)]
            || {
                let (mut x, mut rest) = record.split_at_mut(input.len());
                let mut memory = memory;
                x.copy_from_slice(input);
                for layer in &self.layers {
                    let (mine, after) = rest.split_at_mut(layer.record());
                    let (remembered, later) = memory.split_at_mut(layer.memory());
                    layer.forward(&self.parameters, x, remembered, mine);
                    x = &mut mine[layer.record() - layer.outputs()..];
                    (rest, memory) = (after, later);
                }
            },
        );
    }
}

/// Where the parameters of each layer lie.
fn layers(spec: &NetSpec) -> Vec<Layer> {
    let mut end = 0;
    let mut next = |size: usize| {
        end += size;
        end - size
    };
    let layer = |(n, sizes): (usize, &[usize])| {
        let (inputs, units) = (sizes[0], sizes[1]);
        let Some(n) = n.checked_sub(spec.recurrent()) else {
            let outputs = spec.kind.gates() * units;
            let weights = [next(inputs * outputs), next(units * outputs)];
            let biases = [next(outputs), next(outputs)];
            let affine = |n: usize, inputs| Affine {
                inputs,
                outputs,
                weight: weights[n],
                bias: biases[n],
            };
            let (input, hidden) = (affine(0, inputs), affine(1, units));
            return match spec.kind {
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
            };
        };
        let sums = Affine {
            inputs,
            outputs: units,
            weight: next(inputs * units),
            bias: next(units),
        };
        let activation = spec.activations[n];
        Layer::Dense(Dense { sums, activation })
    };
    spec.layers.windows(2).enumerate().map(layer).collect()
}

/// A matrix of so many rows and columns, row by row, given column by column.
fn transposed(values: &[f32], rows: usize, columns: usize) -> impl Iterator<Item = f32> {
    (0..values.len()).map(move |i| values[(i % rows) * columns + i / rows])
}
