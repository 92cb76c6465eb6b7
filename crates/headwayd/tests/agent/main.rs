//! Tests of the real agent in simulated time, over simulated flows with programs of the fake
//! kernel.
//!
//! No test waits for real time or depends on the machine. Times are exact, and each bound is tried
//! on both sides.
#![cfg(target_os = "linux")]

mod adoption;
mod faults;
mod folder;
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
