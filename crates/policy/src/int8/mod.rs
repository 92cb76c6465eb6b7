//! Policies in whole numbers, which the kernel evaluates itself (`docs/int8.md`): the conversion
//! from floating point, and a controller that does in simulated time what the kernel does, bit for
//! bit.

mod compile;
mod controller;
mod quantised;

pub use compile::compile;
pub use controller::Int8Controller;
pub use quantised::Quantised;
