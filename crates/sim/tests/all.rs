//! The integration tests of this crate, in one program: each links once.

mod edges;
mod routers;
mod snapshots;
mod switches;
