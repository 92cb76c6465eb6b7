//! The integration tests of this crate, in one program: each links once.

mod abi;
mod fake;
mod features;
mod objects;
