//! Tests over real network namespaces, serially: `make test-system`.

mod bed;
mod emulator;
mod hosts;
mod run;
