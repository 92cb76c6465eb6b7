//! Partial Action Learning, without congestion control, and the memory that it takes.

mod a2c;
mod algorithms;
mod checkpoint;
mod memory;
mod order;
mod task;
