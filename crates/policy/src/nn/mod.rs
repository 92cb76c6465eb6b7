//! The networks that decide: their structure, their outputs, and how they learn.
//!
//! A [`NetSpec`] describes a network. Its tensors have PyTorch's names, shapes and formulas. A
//! [`Network`] gives the same bits on every machine: each output is summed in the order of its
//! inputs, with a rounding after every multiplication and every addition, and `tanh` and the
//! logistic function are Headway's own code of a few plain operations. Instruction sets differ only
//! in how many outputs they sum at once.

mod activation;
mod affine;
mod dense;
mod gru;
mod instruction_set;
mod layer;
mod lstm;
mod mask;
mod network;
mod optimizer;
mod spec;
mod trace;

pub use activation::{sigmoid, tanh};
pub use instruction_set::InstructionSet;
pub use mask::MaskSpec;
pub use network::{Network, State, TensorSource};
pub use optimizer::{Optimizer, OptimizerSpec, clip_norm};
pub use spec::{Activation, NetKind, NetSpec};
pub use trace::Trace;

/// A network that cannot be built. The error is one line for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NetError(pub String);
