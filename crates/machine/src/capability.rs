//! The capabilities of a process.

use std::fmt;

use super::{AS_ROOT, Machine, line};

/// A capability that some part of Headway needs, with its number in <linux/capability.h>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// For devices, addresses, routes, and programs at a cgroup.
    NetAdmin = 12,
    /// For namespaces.
    SysAdmin = 21,
    /// For BPF programs that read the kernel's memory.
    Perfmon = 38,
    /// For BPF maps and programs.
    Bpf = 39,
}

impl Capability {
    /// The name for `docker run --cap-add`.
    fn short(self) -> &'static str {
        match self {
            Capability::NetAdmin => "NET_ADMIN",
            Capability::SysAdmin => "SYS_ADMIN",
            Capability::Perfmon => "PERFMON",
            Capability::Bpf => "BPF",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CAP_{}", self.short())
    }
}

impl Machine {
    /// Does the process have a capability, in its own user namespace?
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities
            .is_some_and(|all| all & (1 << capability as u32) != 0)
    }

    /// The capabilities that the process lacks, and how it gets them; `None` if it has all. If
    /// /proc cannot be read, that is the cause.
    pub fn lacks(&self, wanted: &[Capability]) -> Option<String> {
        if self.capabilities.is_none() {
            return Some(line(
                "/proc is not mounted",
                "mount it: 'sudo mount -t proc proc /proc'",
            ));
        }
        let missing = wanted.iter().filter(|one| !self.has(**one));
        let missing: Vec<Capability> = missing.copied().collect();
        let names: Vec<String> = missing.iter().map(Capability::to_string).collect();
        let names = names.join(" and no ");
        let options = missing
            .iter()
            .map(|one| format!("--cap-add {}", one.short()));
        let options: Vec<String> = options.collect();
        match (missing.is_empty(), self.uid) {
            (true, _) => None,
            (_, 0) => Some(line(
                format_args!("this root has no {names}, as in a container"),
                format_args!(
                    "start the container with --privileged, or with {}",
                    options.join(" ")
                ),
            )),
            _ => Some(line(format_args!("this user has no {names}"), AS_ROOT)),
        }
    }
}
