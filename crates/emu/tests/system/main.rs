//! Tests over real network namespaces, serially: `make test-system`.

mod bed;
mod emulator;
mod fitness;
mod hosts;
mod run;
