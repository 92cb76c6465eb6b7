//! The integration tests of this crate, in one program, so that linking happens once.

mod abi;
mod fake;
mod features;
mod objects;
