//! Partial Action Learning, without congestion control.

mod a2c;
mod algorithms;
mod checkpoint;
mod order;
mod task;
