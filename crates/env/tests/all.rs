//! The integration tests of this crate, in one program: each links once.

mod episodes;
mod native;
