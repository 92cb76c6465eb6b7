//! Namespaces of users, which let anybody make others, and namespaces of the network.

use std::io;

use super::{Capability, Machine, UNFILTERED, field, line};

/// A setting of the kernel that forbids namespaces.
struct Rule {
    what: &'static str,
    name: &'static str,
    /// The value with which it forbids them.
    forbids: &'static str,
    /// A value with which it permits them.
    permits: &'static str,
}

/// Settings that make the kernel refuse with ENOSPC.
const LIMITS: [Rule; 2] = [
    Rule {
        what: "no user namespaces are permitted",
        name: "user.max_user_namespaces",
        forbids: "0",
        permits: "15000",
    },
    Rule {
        what: "no network namespaces are permitted",
        name: "user.max_net_namespaces",
        forbids: "0",
        permits: "15000",
    },
];

/// Settings that make the kernel refuse with EPERM.
const RULES: [Rule; 2] = [
    Rule {
        what: "users are not allowed to make user namespaces",
        name: "kernel.unprivileged_userns_clone",
        forbids: "0",
        permits: "1",
    },
    Rule {
        what: "AppArmor forbids user namespaces to users",
        name: "kernel.apparmor_restrict_unprivileged_userns",
        forbids: "1",
        permits: "0",
    },
];

impl Machine {
    /// Why no user namespace can be made, by a process that needs one to make others.
    pub fn user_namespace(&self, error: &io::Error) -> String {
        if (self.uid == 0 || self.capabilities.is_none())
            && let Some(why) = self.lacks(&[Capability::SysAdmin, Capability::NetAdmin])
        {
            return why;
        }
        let found = match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EUSERS) => self.forbidden_by(&LIMITS).or_else(|| {
                self.cured(
                    "all user namespaces that are permitted are in use, or they are 32 deep",
                    "end programs that use them ('lsns -t user' shows them)",
                )
            }),
            Some(libc::EPERM | libc::EACCES) => {
                self.forbidden_by(&RULES)
                    .or_else(|| match (self.is_chroot(), self.is_filtered()) {
                        (true, _) => self.cured(
                            "the kernel makes no user namespaces in a chroot",
                            "start it outside of the chroot",
                        ),
                        (_, true) => self.cured(
                            "a filter of system calls (seccomp) forbids user namespaces, as in \
                             a container",
                            UNFILTERED,
                        ),
                        _ => self.cured(
                            "a chroot or a security module, such as SELinux, forbids user \
                             namespaces",
                            "start it outside of the chroot; a module's log says which rule: \
                             'sudo dmesg', 'sudo ausearch -m avc'",
                        ),
                    })
            }
            Some(libc::EINVAL | libc::ENOSYS) if !self.path("/proc/self/ns/user").exists() => self
                .cured(
                    "this kernel has no user namespaces",
                    "use one with CONFIG_USER_NS",
                ),
            Some(libc::EINVAL) if self.has_threads() => self.cured(
                "a process with several threads cannot enter a user namespace",
                "start Headway by itself, as the command 'headway'",
            ),
            _ => None,
        };
        found.unwrap_or_else(|| error.to_string())
    }

    fn forbidden_by(&self, rules: &[Rule]) -> Option<String> {
        let forbids = |rule: &&Rule| self.is_set(rule.name, rule.forbids);
        let rule = rules.iter().find(forbids)?;
        self.cured(
            &format!("{} ({}={})", rule.what, rule.name, rule.forbids),
            &format!("permit them: 'sudo sysctl {}={}'", rule.name, rule.permits),
        )
    }

    /// The cause and the cure; the machine's root has neither.
    fn cured(&self, cause: &str, cure: &str) -> Option<String> {
        Some(match self.uid {
            0 => line(cause, cure),
            _ => line(cause, format_args!("{cure}, or run it as root")),
        })
    }

    /// Why no network namespace can be made.
    pub fn network_namespace(&self, error: &io::Error) -> String {
        let found = match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EUSERS) => self.forbidden_by(&LIMITS[1..]).or_else(|| {
                self.cured(
                    "all network namespaces that are permitted are in use",
                    "end programs that use them ('lsns -t net' shows them)",
                )
            }),
            Some(libc::EPERM) => self.lacks(&[Capability::SysAdmin]).or_else(|| {
                self.is_filtered().then(|| {
                    line(
                        "a filter of system calls (seccomp) forbids namespaces, as in a container",
                        UNFILTERED,
                    )
                })
            }),
            Some(libc::EINVAL | libc::ENOSYS) => Some(line(
                "this kernel has no network namespaces",
                "use one with CONFIG_NET_NS",
            )),
            _ => None,
        };
        found.unwrap_or_else(|| error.to_string())
    }

    /// Why an existing network namespace cannot be entered.
    pub fn entry(&self, error: &io::Error) -> String {
        let found = match error.raw_os_error() {
            Some(libc::EPERM) => self.lacks(&[Capability::SysAdmin]).or_else(|| {
                Some(line(
                    "it belongs to a user namespace around this one",
                    "start it outside of this one, as the machine's root",
                ))
            }),
            Some(libc::EINVAL) => Some(line(
                "it is not a network namespace",
                "'ip netns list' shows those that have names",
            )),
            Some(libc::ENOENT) => Some(line(
                "it does not exist",
                "'ip netns list' shows those that have names",
            )),
            _ => None,
        };
        found.unwrap_or_else(|| error.to_string())
    }

    /// Mounts are listed by their places below the root; a chroot rarely has one at its root.
    fn is_chroot(&self) -> bool {
        let mounts = self.read("/proc/self/mounts").unwrap_or_default();
        let mut places = mounts.lines().map(|row| row.split(' ').nth(1));
        !mounts.is_empty() && !places.any(|place| place == Some("/"))
    }

    fn has_threads(&self) -> bool {
        let status = self.read("/proc/self/status").unwrap_or_default();
        field(&status, "Threads:").is_some_and(|count| count != "1")
    }
}
