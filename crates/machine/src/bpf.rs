//! BPF programs.

use std::fs;

use super::{Capability, IN_ITS_LOG, Machine, UNFILTERED, line};

/// The file with the kernel's types.
const TYPES: &str = "/sys/kernel/btf/vmlinux";
/// The kernel has this type if BPF programs can be congestion controllers.
const CONTROLLERS: &[u8] = b"bpf_struct_ops_tcp_congestion_ops";
/// The kernel's sockets have this field if there is IPv6. The programs read it.
const IPV6: &[u8] = b"skc_v6_daddr";
/// The contents of /proc/self/uid_map in the machine's own user namespace.
const ALL_USERS: [&str; 3] = ["0", "0", "4294967295"];

impl Machine {
    /// Why the kernel's own types cannot be read, which a program needs to be loaded.
    pub fn types(&self) -> Option<String> {
        if self.path(TYPES).exists() {
            return None;
        }
        Some(match self.path("/sys/kernel").exists() {
            true => line(
                format_args!("this kernel has no type information, BTF (no {TYPES})"),
                "use one with CONFIG_DEBUG_INFO_BTF",
            ),
            false => line(
                format_args!("/sys is not mounted (no {TYPES})"),
                "mount it: 'sudo mount -t sysfs sysfs /sys'",
            ),
        })
    }

    /// Why the process may not load a program, after the kernel refused it with EPERM.
    pub fn bpf(&self) -> String {
        let map = self.read("/proc/self/uid_map").unwrap_or_default();
        let is_own = !map.is_empty() && !map.split_whitespace().eq(ALL_USERS);
        if is_own {
            return line(
                "BPF needs the machine's root, and this is a user namespace",
                "run it outside, as root (sudo): without 'unshare -r', and in no rootless \
                 container",
            );
        }
        // CAP_SYS_ADMIN includes both rights, from the time before they had names of their own.
        let wanted = [Capability::Bpf, Capability::Perfmon];
        if !self.has(Capability::SysAdmin)
            && let Some(why) = self.lacks(&wanted)
        {
            return why;
        }
        let lockdown = self.read("/sys/kernel/security/lockdown");
        if lockdown.is_some_and(|state| state.contains("[confidentiality]")) {
            return line(
                "the kernel is locked down (confidentiality)",
                "start it with lockdown=integrity or without lockdown",
            );
        }
        match self.is_filtered() {
            true => line(
                "a filter of system calls (seccomp) forbids bpf(), as in a container",
                UNFILTERED,
            ),
            false => line("a security module forbids it", IN_ITS_LOG),
        }
    }

    /// Why a kernel that refused a program cannot use any such program, if that is so.
    pub fn bpf_missing(&self) -> Option<String> {
        // The file exists if bpf() exists, whatever its contents.
        if !self
            .path("/proc/sys/kernel/unprivileged_bpf_disabled")
            .exists()
        {
            return Some(line(
                "this kernel has no bpf()",
                "use one with CONFIG_BPF_SYSCALL",
            ));
        }
        if self.is_set("net.core.bpf_jit_enable", "0") {
            return Some(line(
                "the BPF compiler is off (net.core.bpf_jit_enable=0)",
                "turn it on: 'sudo sysctl net.core.bpf_jit_enable=1'",
            ));
        }
        if !self.path("/proc/self/ns/net").exists() {
            return Some(line(
                "this kernel has no network namespaces",
                "use one with CONFIG_NET_NS",
            ));
        }
        let types = fs::read(self.path(TYPES)).ok()?;
        let has = |name: &[u8]| types.windows(name.len()).any(|part| part == name);
        if !has(CONTROLLERS) {
            return Some(line(
                "this kernel accepts no BPF program as a congestion controller (struct_ops)",
                "use one with CONFIG_BPF_JIT and CONFIG_BPF_SYSCALL",
            ));
        }
        (!has(IPV6)).then(|| line("this kernel has no IPv6", "use one with CONFIG_IPV6"))
    }

    /// Why a program may not be attached to a cgroup, after the kernel refused it with EPERM.
    pub fn cgroup_program(&self) -> String {
        self.lacks(&[Capability::NetAdmin]).unwrap_or_else(|| {
            line(
                "this cgroup or one around it has a program that admits no other",
                "give another cgroup: 'sudo bpftool cgroup tree' shows which have programs",
            )
        })
    }
}
