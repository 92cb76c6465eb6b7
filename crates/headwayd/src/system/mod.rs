//! What the agent needs of the machine besides BPF programs.

pub mod capabilities;
pub mod cgroup;
pub mod clock;
pub mod default_controller;
pub mod kernel;
pub mod logs;
pub mod priority;
pub mod signals;
