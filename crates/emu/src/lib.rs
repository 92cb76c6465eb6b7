//! World 2: real packets in real time.
//!
//! An emulator leads real IP packets from one TUN device to another through the links of
//! `headway-net`, the same that the simulator has. Hosts are network namespaces.

#![cfg(target_os = "linux")]

pub mod emulator;
pub mod fitness;
pub mod host;
pub mod ip;
pub mod log;
pub mod run;
pub mod shell;
pub mod sys;
