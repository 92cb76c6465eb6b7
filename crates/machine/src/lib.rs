//! Explains what a machine refuses: the cause and the cure, in one line.
//!
//! An error's number says neither: EPERM alone has a dozen causes. [`Machine`] reads them from
//! /proc, /sys and /dev. `docs/troubleshooting.md` has a table of all.

#![cfg(target_os = "linux")]

mod bpf;
mod capability;
mod cgroup;
mod connect;
mod namespaces;
mod tun;

use std::fmt::Display;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use nix::unistd::geteuid;

pub use capability::Capability;
pub use connect::connect_within;

/// This machine, seen by a process whose request it refused.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The folder with /proc, /sys and /dev.
    root: PathBuf,
    uid: u32,
    /// The effective capabilities, a bit each; `None` if /proc cannot be read.
    capabilities: Option<u64>,
}

impl Machine {
    /// The machine as the calling thread finds it now. Call this before the thread changes its
    /// rights: a refusal depends on the rights that it had before.
    pub fn here() -> Machine {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        Machine {
            root: PathBuf::from("/"),
            uid: geteuid().as_raw(),
            capabilities: field(&status, "CapEff:")
                .and_then(|hex| u64::from_str_radix(hex, 16).ok()),
        }
    }

    /// Why the kernel's setting `file`, below /proc/sys, cannot be read or written.
    pub fn setting(&self, file: &str, error: &io::Error) -> String {
        match error.raw_os_error() {
            Some(libc::EROFS) => line(
                "/proc/sys is mounted read-only, as in a container",
                "start the container with --privileged, or with --security-opt \
                 systempaths=unconfined",
            ),
            Some(libc::EACCES | libc::EPERM) if self.uid == 0 => line(
                "a security module, such as AppArmor, forbids it, as in a container",
                "start the container with --privileged, or with --security-opt \
                 apparmor=unconfined",
            ),
            Some(libc::EACCES | libc::EPERM) => line("only root may write it", AS_ROOT),
            _ if !self.path(file).exists() => line(
                "there is no such setting",
                "mount the whole of /proc ('sudo mount -t proc proc /proc'), or use a newer kernel",
            ),
            _ => error.to_string(),
        }
    }

    /// Why the program `ip` cannot be run.
    pub fn ip(&self, error: &io::Error) -> String {
        match error.kind() {
            io::ErrorKind::NotFound => line(
                "there is no 'ip' on the PATH",
                format_args!("{INSTALL_IP}, or put its folder, such as /usr/sbin, on the PATH"),
            ),
            io::ErrorKind::PermissionDenied => {
                line("the 'ip' on the PATH may not be run", INSTALL_IP)
            }
            _ => error.to_string(),
        }
    }

    /// The error of an `ip` that printed this when it was given lines to carry out.
    pub fn said_by_ip(&self, said: &str, status: ExitStatus) -> String {
        match said.trim() {
            "" => line(
                format!("'ip -batch' printed nothing, {status}"),
                "see whether 'ip link' works, and what is first on the PATH: 'command -v ip'",
            ),
            _ if said.contains("BusyBox") => line("the 'ip' on the PATH is BusyBox's", INSTALL_IP),
            said => said.replace('\n', "; "),
        }
    }

    /// The contents of a file, without white space around them; `None` if it cannot be read.
    fn read(&self, file: &str) -> Option<String> {
        let text = fs::read_to_string(self.path(file)).ok()?;
        Some(text.trim().to_owned())
    }

    /// Does a setting of the kernel have this value?
    fn is_set(&self, setting: &str, value: &str) -> bool {
        let file = format!("/proc/sys/{}", setting.replace('.', "/"));
        self.read(&file).is_some_and(|found| found == value)
    }

    /// The path of `file`.
    fn path(&self, file: &str) -> PathBuf {
        self.root.join(file.trim_start_matches('/'))
    }

    /// Does a filter of system calls apply to this process?
    fn is_filtered(&self) -> bool {
        let status = self.read("/proc/self/status").unwrap_or_default();
        field(&status, "Seccomp:") == Some("2")
    }

    /// The mount points of a kind of filesystem.
    fn mounts_of(&self, kind: &str) -> Vec<PathBuf> {
        let mounts = self.read("/proc/self/mounts").unwrap_or_default();
        let rows = mounts.lines().map(|row| row.split(' ').collect::<Vec<_>>());
        rows.filter(|row| row.get(2) == Some(&kind))
            .map(|row| Path::new(row[1]).to_owned())
            .collect()
    }
}

const AS_ROOT: &str = "run it as root (sudo)";
const UNFILTERED: &str =
    "start the container with --privileged, or with --security-opt seccomp=unconfined";
const IN_ITS_LOG: &str = "the module's log says which rule: 'sudo dmesg', 'sudo ausearch -m avc'";
const INSTALL_IP: &str = "install iproute2 (sudo apt-get install -y iproute2)";

/// The value of a field of /proc/PID/status.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let found = status.lines().find_map(|line| line.strip_prefix(name));
    found.map(str::trim)
}

fn line(cause: impl Display, cure: impl Display) -> String {
    format!("{cause}; {cure}")
}

#[cfg(test)]
mod tests;
