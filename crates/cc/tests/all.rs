//! The integration tests of this crate, in one program, so that linking happens once.

mod docs;
mod invariants;
