//! The integration tests of this crate, in one program, so that linking happens once.

mod agents;
mod clocks;
mod dqn;
mod guard;
mod int8;
mod intervals;
mod nn_bits;
mod nn_pytorch;
mod nn_refused;
mod numbers;
mod rax;
mod specs;
