//! The agent in simulated time: the real one, over simulated flows whose programs are the fake
//! kernel's.
//!
//! Nothing here waits, and nothing depends on the machine: times are exact, and each bound is tried
//! on both sides.
#![cfg(target_os = "linux")]

mod adoption;
mod faults;
mod host;
mod models;
mod patience;
mod program;
mod seen;
mod serving;
mod sharing;
mod slots;
mod takeover;
mod turns;
