//! The integration tests of this crate, in one program: each links once.

mod docs;
mod owl_paths;
mod queues;
mod shipped;
mod store;
mod sweep;
mod switches;
