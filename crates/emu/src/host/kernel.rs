//! The controllers of the kernel's TCP, and how TCP is set up in a namespace.

use std::fs;

use headway_cc::{SchemeError, suggest};

use crate::sys::{SetupError, set};

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// The kernel's congestion controllers, including those in BPF, as the calling thread's namespace
/// shows them; none if /proc cannot be read.
pub fn available() -> Vec<String> {
    let names = fs::read_to_string(AVAILABLE).unwrap_or_default();
    names.split_whitespace().map(str::to_owned).collect()
}

/// Checks that the kernel has the controller `name`.
///
/// # Errors
/// [`SchemeError`], which lists the controllers that it has. A module that is not loaded counts as
/// missing.
pub fn require(name: &str) -> Result<(), SchemeError> {
    let available = available();
    // If /proc cannot be read, the socket will say.
    if available.is_empty() || available.iter().any(|a| a == name) {
        return Ok(());
    }
    Err(SchemeError(missing(name, &available)))
}

pub(super) fn missing(name: &str, available: &[String]) -> String {
    let hint = match name {
        "bbr" => "'modprobe tcp_bbr' may help; 'udp-bbr' is ours".to_owned(),
        _ => suggest(name, available.iter().map(String::as_str)),
    };
    let name = name.escape_debug();
    format!("the kernel has no congestion control '{name}'; {hint}")
}

/// The settings of a namespace's TCP. The receive window is that of the simulator's profile
/// `linux`, whatever this kernel's is (it was 6 MB for long, of which half is window, and is 32 MB
/// since 6.16). The send buffer is larger than any path needs, and the kernel grows it. TCP keeps
/// no memory of earlier connections, which would make runs differ.
const SETTINGS: [(&str, &str); 3] = [
    ("/proc/sys/net/ipv4/tcp_rmem", "4096 131072 6291456"),
    ("/proc/sys/net/ipv4/tcp_wmem", "4096 16384 67108864"),
    ("/proc/sys/net/ipv4/tcp_no_metrics_save", "1"),
];

/// Sets up TCP in the calling thread's network namespace, which must be one of our own.
///
/// # Errors
/// If the kernel does not let it.
pub fn prepare_namespace() -> Result<(), SetupError> {
    SETTINGS.iter().try_for_each(|(file, text)| set(file, text))
}
