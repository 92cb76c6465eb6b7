//! Partial Action Learning without congestion control, and its memory use.

mod a2c;
mod algorithms;
mod checkpoint;
mod memory;
mod order;
mod task;
