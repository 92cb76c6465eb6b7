//! Partial Action Learning, without congestion control.

mod a2c;
mod algorithms;
mod order;
mod task;
