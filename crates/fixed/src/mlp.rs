//! A small network in whole numbers (`nets.h`).

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::native;

/// The number of inputs.
pub const INPUTS: usize = 30;
/// The number of units of the first hidden layer.
pub const HIDDEN1: usize = 32;
/// The number of units of the second hidden layer.
pub const HIDDEN2: usize = 16;

/// `struct headway_mlp`: a multilayer perceptron 30-32-16-1. Inputs and hidden units are 0 to 255.
/// A layer passes `clip(round(sum * multiplier / 2^shift))` on, with a half rounded up. The output
/// is computed in the same way, without the clip.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Mlp {
    /// The multiplier of each layer; the lowest 24 bits count.
    pub multipliers: [u32; 3],
    /// The shift of each layer; the lowest 6 bits count.
    pub shifts: [u32; 3],
    /// The bias of each unit of the first hidden layer.
    pub biases1: [i32; HIDDEN1],
    /// The bias of each unit of the second hidden layer.
    pub biases2: [i32; HIDDEN2],
    /// The bias of the output.
    pub bias3: i32,
    /// Unused; always zero.
    pub unused: u32,
    /// The weights of the first hidden layer, with a row for each unit.
    pub weights1: [[i8; INPUTS]; HIDDEN1],
    /// The weights of the second hidden layer, with a row for each unit.
    pub weights2: [[i8; HIDDEN1]; HIDDEN2],
    /// The weights of the output.
    pub weights3: [i8; HIDDEN2],
}

/// `struct headway_mlp_values`: a network's inputs, and the values of its hidden layers.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct MlpValues {
    /// The inputs.
    pub inputs: [u8; INPUTS],
    /// Unused; always zero.
    pub unused: [u8; 2],
    /// The values of the first hidden layer.
    pub hidden1: [u8; HIDDEN1],
    /// The values of the second hidden layer.
    pub hidden2: [u8; HIDDEN2],
}

impl Mlp {
    /// The output for `values.inputs`. Its magnitude is below 2^56 for any weights.
    pub fn run(&self, values: &mut MlpValues) -> i64 {
        native::headway_native_mlp_run(self, values)
    }
}

impl Default for Mlp {
    fn default() -> Mlp {
        Mlp::new_zeroed()
    }
}

impl Default for MlpValues {
    fn default() -> MlpValues {
        MlpValues::new_zeroed()
    }
}
