//! The structure of a network.

use headway_fixed::{HIDDEN1, HIDDEN2, INPUTS};
use serde::{Deserialize, Serialize};

use super::{MaskSpec, NetError};

/// The largest number of units in a layer.
const MAX_UNITS: usize = 8192;
/// The largest number of parameters; they take 64 MB.
const MAX_PARAMETERS: usize = 1 << 24;

/// The structure of a network. In a model's card:
///
/// ```toml
/// [net]
/// kind = "mlp"
/// layers = [30, 32, 16, 1]
/// activations = ["tanh", "tanh", "identity"]
/// ```
///
/// A `gru` or an `lstm` has `recurrent_layers` (default 1) of that kind, then dense ones. With
/// `layers = [9, 64, 2]` it has 9 inputs, one recurrent layer of 64 units, and 2 outputs. An `int8`
/// network is a [`headway_fixed::Mlp`]: it has that one's layers, and its activations cannot be
/// chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetSpec {
    /// The kind of the first layers.
    pub kind: NetKind,
    /// The numbers of inputs, of units in each layer, and of outputs.
    pub layers: Vec<usize>,
    /// The activation of each dense layer.
    #[serde(default)]
    pub activations: Vec<Activation>,
    /// The number of recurrent layers. They have equally many units, as PyTorch's do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recurrent_layers: Option<usize>,
    /// The mask that scales some inputs before the first layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask: Option<MaskSpec>,
}

/// The kind of a network's first layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetKind {
    /// Dense layers, like all others.
    Mlp,
    /// Gated recurrent units (`torch.nn.GRU`).
    Gru,
    /// Long short-term memory (`torch.nn.LSTM`).
    Lstm,
    /// Dense layers in whole numbers, for the kernel ([`headway_fixed::Mlp`]).
    Int8,
}

/// The activation that a dense layer applies to its sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// No activation.
    #[serde(alias = "linear")]
    Identity,
    /// max(x, 0).
    Relu,
    /// x, or 0.01 x below zero.
    LeakyRelu,
    /// The hyperbolic tangent.
    Tanh,
    /// The logistic function, 1 / (1 + e^-x).
    Sigmoid,
}

impl NetKind {
    /// The number of gates of a layer: blocks of rows in PyTorch's tensors.
    pub(super) fn gates(self) -> usize {
        match self {
            NetKind::Mlp | NetKind::Int8 => 1,
            NetKind::Gru => 3,
            NetKind::Lstm => 4,
        }
    }

    /// The prefix of the recurrent tensors' names.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            NetKind::Mlp | NetKind::Int8 => "layers",
            NetKind::Gru => "gru",
            NetKind::Lstm => "lstm",
        }
    }
}

impl NetSpec {
    /// The number of inputs.
    pub fn inputs(&self) -> usize {
        self.layers.first().copied().unwrap_or(0)
    }

    /// The number of outputs.
    pub fn outputs(&self) -> usize {
        self.layers.last().copied().unwrap_or(0)
    }

    /// The number of recurrent layers.
    pub fn recurrent(&self) -> usize {
        match self.kind {
            NetKind::Mlp | NetKind::Int8 => 0,
            NetKind::Gru | NetKind::Lstm => self.recurrent_layers.unwrap_or(1),
        }
    }

    /// The names and shapes of the tensors, in the order in which they are applied. Weights are
    /// `[outputs, inputs]`, row by row, as in PyTorch. `layers.N.weight` and `layers.N.bias` belong
    /// to dense layers; `gru.weight_ih_lN`, `gru.weight_hh_lN`, `gru.bias_ih_lN` and
    /// `gru.bias_hh_lN` to a recurrent layer; `mask.weight` and `mask.bias` to the mask.
    /// `multipliers` and `shifts` scale the sums of an int8 network's layers.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let mut tensors = Vec::new();
        if let Some(mask) = &self.mask {
            tensors.extend(["weight", "bias"].map(|part| {
                let name = format!("mask.{part}");
                (name, vec![mask.masked.len()])
            }));
        }
        let (gates, prefix) = (self.kind.gates(), self.kind.prefix());
        for (n, sizes) in self.layers.windows(2).enumerate() {
            let (inputs, units) = (sizes[0], sizes[1]);
            match n.checked_sub(self.recurrent()) {
                None => tensors.extend([
                    (
                        format!("{prefix}.weight_ih_l{n}"),
                        vec![gates * units, inputs],
                    ),
                    (
                        format!("{prefix}.weight_hh_l{n}"),
                        vec![gates * units, units],
                    ),
                    (format!("{prefix}.bias_ih_l{n}"), vec![gates * units]),
                    (format!("{prefix}.bias_hh_l{n}"), vec![gates * units]),
                ]),
                Some(n) => tensors.extend([
                    (format!("layers.{n}.weight"), vec![units, inputs]),
                    (format!("layers.{n}.bias"), vec![units]),
                ]),
            }
        }
        if self.kind == NetKind::Int8 {
            let layers = vec![self.layers.len() - 1];
            tensors.extend(["multipliers", "shifts"].map(|part| (part.to_owned(), layers.clone())));
        }
        tensors
    }

    /// Checks that the network can be built.
    ///
    /// # Errors
    /// [`NetError`], one line.
    pub fn check(&self) -> Result<(), NetError> {
        let fail = |text: String| Err(NetError(format!("net: {text}")));
        if self.layers.len() < 2 || self.layers.iter().any(|n| !(1..=MAX_UNITS).contains(n)) {
            return fail(format!(
                "layers must be two or more numbers from 1 to {MAX_UNITS}: inputs, units, outputs"
            ));
        }
        if self.kind == NetKind::Int8 {
            return self.check_int8();
        }
        let transitions = self.layers.len() - 1;
        match (self.kind, self.recurrent_layers) {
            (NetKind::Mlp, Some(_)) => {
                return fail(
                    "recurrent_layers is set, but an mlp has none; leave it out".to_owned(),
                );
            }
            (_, Some(n)) if !(1..=transitions).contains(&n) => {
                return fail(format!(
                    "recurrent_layers is {n}, must be 1 to {transitions}, the number of layers"
                ));
            }
            _ => {}
        }
        let units = &self.layers[1..=self.recurrent()];
        if units.windows(2).any(|pair| pair[0] != pair[1]) {
            return fail(format!(
                "recurrent layers must have equally many units, not {units:?}"
            ));
        }
        let dense = transitions - self.recurrent();
        if self.activations.len() != dense {
            return fail(format!(
                "{} activations for {dense} dense layers; each needs one",
                self.activations.len()
            ));
        }
        if let Some(mask) = &self.mask {
            mask.check(self.inputs())?;
        }
        let size = |(_, shape): &(String, Vec<usize>)| shape.iter().product::<usize>();
        match self.tensors().iter().map(size).sum::<usize>() {
            0..=MAX_PARAMETERS => Ok(()),
            n => fail(format!("{n} parameters, must be at most {MAX_PARAMETERS}")),
        }
    }

    /// The kernel's program has only one size of network.
    fn check_int8(&self) -> Result<(), NetError> {
        let size = [INPUTS, HIDDEN1, HIDDEN2, 1];
        if self.layers != size {
            let found = &self.layers;
            return Err(NetError(format!(
                "net: layers is {found:?}, of an int8 network it must be {size:?}"
            )));
        }
        if !self.activations.is_empty() || self.recurrent_layers.is_some() || self.mask.is_some() {
            return Err(NetError(
                "net: an int8 network has no activations, recurrent_layers or mask; take them out"
                    .to_owned(),
            ));
        }
        Ok(())
    }
}
