//! What the agent asks of the machine beside the programs.

pub mod capabilities;
pub mod cgroup;
pub mod clock;
pub mod default_controller;
pub mod kernel;
pub mod logs;
pub mod priority;
pub mod signals;
