//! A small network in whole numbers (`nets.h`).

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::native;

/// How many inputs it has.
pub const INPUTS: usize = 30;
/// Units of its first hidden layer.
pub const HIDDEN1: usize = 32;
/// Units of its second hidden layer.
pub const HIDDEN2: usize = 16;

/// `struct headway_mlp`: a multilayer perceptron 30-32-16-1, its inputs and hidden units 0 to 255.
/// A layer's sum becomes what the next one sees by `clip(round(sum * multiplier / 2^shift))`, a
/// half rounded up; the output is that without the clip.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Mlp {
    /// Of each layer; the lowest 24 bits count.
    pub multipliers: [u32; 3],
    /// Of each layer; the lowest 6 bits count.
    pub shifts: [u32; 3],
    /// Of each unit.
    pub biases1: [i32; HIDDEN1],
    /// Of each unit.
    pub biases2: [i32; HIDDEN2],
    /// Of the output.
    pub bias3: i32,
    /// Zero.
    pub unused: u32,
    /// A row for each unit.
    pub weights1: [[i8; INPUTS]; HIDDEN1],
    /// A row for each unit.
    pub weights2: [[i8; HIDDEN1]; HIDDEN2],
    /// Of the output.
    pub weights3: [i8; HIDDEN2],
}

/// `struct headway_mlp_values`: what goes into a network, and what its hidden layers hold.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct MlpValues {
    /// What goes in.
    pub inputs: [u8; INPUTS],
    /// Zero.
    pub unused: [u8; 2],
    /// The first hidden layer.
    pub hidden1: [u8; HIDDEN1],
    /// The second.
    pub hidden2: [u8; HIDDEN2],
}

impl Mlp {
    /// The output for `values.inputs`: below 2^56 on either side, whatever the weights.
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
