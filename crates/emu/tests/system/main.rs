//! Tests over real network namespaces, serially: `make test-system`.

mod bed;
mod emulator;
mod fitness;
mod hosts;
#[path = "../live/mod.rs"]
mod live;
mod run;
