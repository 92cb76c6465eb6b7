//! The integration tests of this crate, in one program: each links once.

mod docs;
mod invariants;
