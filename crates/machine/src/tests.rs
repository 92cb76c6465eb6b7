//! Machines made of folders, because most of these cases are not available here.

use std::env;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

const DOCS: &str = include_str!("../../../docs/troubleshooting.md");
const USER: u32 = 1000;
const ALL: u64 = u64::MAX;

/// A folder with a machine's files, deleted at the end of the test.
struct Place(PathBuf);

impl Place {
    fn new(files: &[(&str, &str)]) -> Place {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("headway-test-machine-{}-{number}", std::process::id());
        let place = Place(env::temp_dir().join(name));
        fs::create_dir_all(&place.0).unwrap();
        for (file, text) in files {
            let file = place.0.join(file.trim_start_matches('/'));
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        place
    }

    fn machine(&self, uid: u32, capabilities: u64) -> Machine {
        Machine {
            root: self.0.clone(),
            uid,
            capabilities: Some(capabilities),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn error(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

/// Checks a line, and that the documentation has its cause and its cure in one row.
#[track_caller]
fn documented(found: &str, expected: &str) {
    assert_eq!(found, expected);
    let (cause, cure) = expected.split_once("; ").expect("a cause and a cure");
    let cure = cure.strip_suffix(", or run it as root").unwrap_or(cure);
    let mut rows = DOCS.lines().filter(|row| row.starts_with('|'));
    assert!(
        rows.any(|row| row.starts_with(&format!("| {cause} | {cure}"))),
        "docs/troubleshooting.md has no row '{cause}'"
    );
}

/// The error of a process without rights of its own, where settings have these values.
fn as_user(settings: &[(&str, &str)], number: i32) -> String {
    Place::new(settings)
        .machine(USER, 0)
        .user_namespace(&error(number))
}

#[test]
fn a_tun_device_that_cannot_be_opened() {
    let nothing = Place::new(&[]);
    let refused = |number| nothing.machine(USER, 0).tun(&error(number));
    documented(
        &refused(libc::ENOENT),
        "there is no such device; load the module ('sudo modprobe tun'); start a container with \
         --device /dev/net/tun",
    );
    for number in [libc::ENODEV, libc::ENXIO] {
        documented(
            &refused(number),
            "the kernel has no driver for it; load the module ('sudo modprobe tun'), or use a \
             kernel with CONFIG_TUN",
        );
    }
    documented(
        &refused(libc::EPERM),
        "the cgroup's rules for devices forbid it, as in a container; start the container with \
         --device /dev/net/tun (a unit of systemd: DeviceAllow=/dev/net/tun rw)",
    );
    documented(
        &refused(libc::EACCES),
        "a security module, such as SELinux, forbids it; the module's log says which rule: 'sudo dmesg', \
         'sudo ausearch -m avc'",
    );
    assert_eq!(refused(libc::EMFILE), error(libc::EMFILE).to_string());
}

/// No test may make a device: a link to another one replaces it.
#[test]
fn a_tun_device_that_is_something_else() {
    const MAKE_AGAIN: &str = "it is not the character device 10:200; make it again: \
        'sudo rm -r /dev/net/tun; sudo mknod -m 0666 /dev/net/tun c 10 200'";
    let place = Place::new(&[("/dev/net/tun", "")]);
    let node = place.0.join("dev/net/tun");
    let machine = place.machine(0, ALL);
    for is_a_device in [false, true] {
        if is_a_device {
            fs::remove_file(&node).unwrap();
            symlink("/dev/null", &node).unwrap();
        }
        documented(&machine.tun(&error(libc::EACCES)), MAKE_AGAIN);
        // Root opens it, but the file does not behave as a TUN device.
        documented(&machine.tun_device(&error(libc::ENOTTY)), MAKE_AGAIN);
    }
}

#[test]
fn an_error_says_why_a_tun_device_cannot_be_made() {
    let place = Place::new(&[]);
    let without = place.machine(0, ALL & !(1 << Capability::NetAdmin as u32));
    documented(
        &without.tun_device(&error(libc::EPERM)),
        "this root has no CAP_NET_ADMIN, as in a container; start the container with \
         --privileged, or with --cap-add NET_ADMIN",
    );
    documented(
        &place.machine(0, ALL).tun_device(&error(libc::EBUSY)),
        "a device of that name exists already; end what made it: 'ip link' shows it, and 'headway \
         shell --list' the shells",
    );
}

#[test]
fn settings_that_forbid_user_namespaces() {
    const MOUNTS: (&str, &str) = ("/proc/self/mounts", "none / ext4 rw 0 0\n");
    documented(
        &as_user(
            &[("/proc/sys/user/max_user_namespaces", "0\n")],
            libc::ENOSPC,
        ),
        "no user namespaces are permitted (user.max_user_namespaces=0); permit them: 'sudo sysctl \
         user.max_user_namespaces=15000', or run it as root",
    );
    documented(
        &as_user(
            &[("/proc/sys/user/max_net_namespaces", "0\n")],
            libc::ENOSPC,
        ),
        "no network namespaces are permitted (user.max_net_namespaces=0); permit them: 'sudo \
         sysctl user.max_net_namespaces=15000', or run it as root",
    );
    documented(
        &as_user(
            &[("/proc/sys/user/max_user_namespaces", "9\n")],
            libc::ENOSPC,
        ),
        "all user namespaces that are permitted are in use, or they are 32 deep; end programs \
         that use them ('lsns -t user' shows them), or run it as root",
    );
    let clone = "/proc/sys/kernel/unprivileged_userns_clone";
    documented(
        &as_user(&[MOUNTS, (clone, "0\n")], libc::EPERM),
        "users are not allowed to make user namespaces (kernel.unprivileged_userns_clone=0); permit them: \
         'sudo sysctl kernel.unprivileged_userns_clone=1', or run it as root",
    );
    let apparmor = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
    for number in [libc::EPERM, libc::EACCES] {
        documented(
            &as_user(&[MOUNTS, (clone, "1\n"), (apparmor, "1\n")], number),
            "AppArmor forbids user namespaces to users \
             (kernel.apparmor_restrict_unprivileged_userns=1); permit them: 'sudo sysctl \
             kernel.apparmor_restrict_unprivileged_userns=0', or run it as root",
        );
    }
    documented(
        &as_user(&[MOUNTS, (clone, "1\n"), (apparmor, "0\n")], libc::EPERM),
        "a chroot or a security module, such as SELinux, forbids user namespaces; start it outside \
         of the chroot; a module's log says which rule: 'sudo dmesg', 'sudo ausearch -m avc', or \
         run it as root",
    );
}

#[test]
fn places_without_user_namespaces() {
    let mounts = |text| ("/proc/self/mounts", text);
    let filtered = ("/proc/self/status", "Name:\tx\nThreads:\t1\nSeccomp:\t2\n");
    documented(
        &as_user(&[mounts("none / ext4 rw 0 0\n"), filtered], libc::EPERM),
        "a filter of system calls (seccomp) forbids user namespaces, as in a container; start the \
         container with --privileged, or with --security-opt seccomp=unconfined, or run it as root",
    );
    documented(
        &as_user(&[mounts("none /proc proc rw 0 0\n"), filtered], libc::EPERM),
        "the kernel makes no user namespaces in a chroot; start it outside of the chroot, or run \
         it as root",
    );
    documented(
        &as_user(&[], libc::EINVAL),
        "this kernel has no user namespaces; use one with CONFIG_USER_NS, or run it as root",
    );
    let threads = [
        ("/proc/self/status", "Threads:\t7\n"),
        ("/proc/self/ns/user", ""),
    ];
    documented(
        &as_user(&threads, libc::EINVAL),
        "a process with several threads cannot enter a user namespace; start Headway by itself, \
         as the command 'headway', or run it as root",
    );
}

#[test]
fn root_without_capabilities() {
    let place = Place::new(&[("/proc/sys/user/max_user_namespaces", "0\n")]);
    documented(
        &place.machine(0, 0).user_namespace(&error(libc::EPERM)),
        "this root has no CAP_SYS_ADMIN and no CAP_NET_ADMIN, as in a container; start the \
         container with --privileged, or with --cap-add SYS_ADMIN --cap-add NET_ADMIN",
    );
    // Root of a user namespace has all capabilities, and cannot become another root.
    let root = place.machine(0, ALL).user_namespace(&error(libc::ENOSPC));
    assert!(
        root.ends_with("'sudo sysctl user.max_user_namespaces=15000'"),
        "{root}"
    );
}

#[test]
fn a_machine_without_proc() {
    for uid in [0, USER] {
        let machine = Machine {
            capabilities: None,
            ..Place::new(&[]).machine(uid, 0)
        };
        documented(
            &machine.user_namespace(&error(libc::ENOENT)),
            "/proc is not mounted; mount it: 'sudo mount -t proc proc /proc'",
        );
    }
}

#[test]
fn network_namespaces() {
    let place = Place::new(&[("/proc/self/status", "Seccomp:\t2\n")]);
    let able = place.machine(0, ALL);
    documented(
        &able.network_namespace(&error(libc::ENOSPC)),
        "all network namespaces that are permitted are in use; end programs that use them \
         ('lsns -t net' shows them)",
    );
    documented(
        &able.network_namespace(&error(libc::EPERM)),
        "a filter of system calls (seccomp) forbids namespaces, as in a container; start the \
         container with --privileged, or with --security-opt seccomp=unconfined",
    );
    documented(
        &able.network_namespace(&error(libc::EINVAL)),
        "this kernel has no network namespaces; use one with CONFIG_NET_NS",
    );
    documented(
        &place.machine(USER, 0).entry(&error(libc::EPERM)),
        "this user has no CAP_SYS_ADMIN; run it as root (sudo)",
    );
    documented(
        &able.entry(&error(libc::EPERM)),
        "it belongs to a user namespace around this one; start it outside of this one, as the \
         machine's root",
    );
    documented(
        &able.entry(&error(libc::ENOENT)),
        "it does not exist; 'ip netns list' shows those that have names",
    );
    documented(
        &able.entry(&error(libc::EINVAL)),
        "it is not a network namespace; 'ip netns list' shows those that have names",
    );
}

#[test]
fn settings_of_the_kernel() {
    const FILE: &str = "/proc/sys/net/ipv4/ip_forward";
    let place = Place::new(&[(FILE, "0")]);
    let refused = |uid, number| place.machine(uid, ALL).setting(FILE, &error(number));
    documented(
        &refused(0, libc::EROFS),
        "/proc/sys is mounted read-only, as in a container; start the container with \
         --privileged, or with --security-opt systempaths=unconfined",
    );
    documented(
        &refused(0, libc::EACCES),
        "a security module, such as AppArmor, forbids it, as in a container; start the container \
         with --privileged, or with --security-opt apparmor=unconfined",
    );
    documented(
        &refused(USER, libc::EACCES),
        "only root may write it; run it as root (sudo)",
    );
    documented(
        &Place::new(&[])
            .machine(0, ALL)
            .setting(FILE, &error(libc::ENOENT)),
        "there is no such setting; mount the whole of /proc ('sudo mount -t proc proc /proc'), or \
         use a newer kernel",
    );
    // The value is one that the kernel does not accept.
    assert_eq!(refused(0, libc::ENOENT), error(libc::ENOENT).to_string());
}

#[test]
fn the_program_ip() {
    let here = Machine::here();
    let failed = ExitStatus::from_raw(2 << 8);
    documented(
        &here.ip(&error(libc::ENOENT)),
        "there is no 'ip' on the PATH; install iproute2 (sudo apt-get install -y iproute2), or put \
         its folder, such as /usr/sbin, on the PATH",
    );
    documented(
        &here.ip(&error(libc::EACCES)),
        "the 'ip' on the PATH may not be run; install iproute2 (sudo apt-get install -y iproute2)",
    );
    documented(
        &here.said_by_ip(
            "ip: unrecognized option: b\nBusyBox v1.36.1 multi-call binary.\n",
            failed,
        ),
        "the 'ip' on the PATH is BusyBox's; install iproute2 (sudo apt-get install -y iproute2)",
    );
    assert_eq!(
        here.said_by_ip("RTNETLINK answers: x\nline 2\n", failed),
        "RTNETLINK answers: x; line 2"
    );
    documented(
        &here.said_by_ip(" \n", failed),
        "'ip -batch' printed nothing, exit status: 2; see whether 'ip link' works, and what is first on \
         the PATH: 'command -v ip'",
    );
}

#[test]
fn rights_to_bpf() {
    const ROOT: (&str, &str) = ("/proc/self/uid_map", "         0          0 4294967295\n");
    let refused = |files: &[(&str, &str)], uid, capabilities| {
        Place::new(files).machine(uid, capabilities).bpf()
    };
    documented(
        &refused(&[ROOT], 0, 0),
        "this root has no CAP_BPF and no CAP_PERFMON, as in a container; start the container with \
         --privileged, or with --cap-add BPF --cap-add PERFMON",
    );
    documented(
        &refused(&[ROOT], USER, 0),
        "this user has no CAP_BPF and no CAP_PERFMON; run it as root (sudo)",
    );
    documented(
        &refused(&[("/proc/self/uid_map", "0 1000 1\n")], 0, ALL),
        "BPF needs the machine's root, and this is a user namespace; run it outside, as root \
         (sudo): without 'unshare -r', and in no rootless container",
    );
    let locked = |state| ("/sys/kernel/security/lockdown", state);
    documented(
        &refused(
            &[ROOT, locked("none integrity [confidentiality]\n")],
            0,
            ALL,
        ),
        "the kernel is locked down (confidentiality); start it with lockdown=integrity or without \
         lockdown",
    );
    let filtered = ("/proc/self/status", "Seccomp:\t2\n");
    documented(
        &refused(
            &[ROOT, locked("[none] integrity confidentiality\n"), filtered],
            0,
            ALL,
        ),
        "a filter of system calls (seccomp) forbids bpf(), as in a container; start the container \
         with --privileged, or with --security-opt seccomp=unconfined",
    );
    // Older container runtimes do not know CAP_BPF, and CAP_SYS_ADMIN includes its rights.
    documented(
        &refused(&[ROOT], 0, 1 << Capability::SysAdmin as u32),
        "a security module forbids it; the module's log says which rule: 'sudo dmesg', 'sudo ausearch -m \
         avc'",
    );
}

#[test]
fn an_error_says_what_a_kernel_lacks_for_bpf() {
    const CALL: (&str, &str) = ("/proc/sys/kernel/unprivileged_bpf_disabled", "2\n");
    const NETWORK: (&str, &str) = ("/proc/self/ns/net", "");
    const TYPES: &str = "/sys/kernel/btf/vmlinux";
    let of = |files: &[(&str, &str)]| Place::new(files);
    let types = |files: &[(&str, &str)]| of(files).machine(0, ALL).types();
    documented(
        &types(&[("/sys/kernel/uevent_seqnum", "1")]).unwrap(),
        "this kernel has no type information, BTF (no /sys/kernel/btf/vmlinux); use one with \
         CONFIG_DEBUG_INFO_BTF",
    );
    documented(
        &types(&[]).unwrap(),
        "/sys is not mounted (no /sys/kernel/btf/vmlinux); mount it: 'sudo mount -t sysfs sysfs \
         /sys'",
    );
    assert_eq!(types(&[(TYPES, "")]), None);

    let missing = |files: &[(&str, &str)]| of(files).machine(0, ALL).bpf_missing();
    documented(
        &missing(&[]).unwrap(),
        "this kernel has no bpf(); use one with CONFIG_BPF_SYSCALL",
    );
    documented(
        &missing(&[CALL, ("/proc/sys/net/core/bpf_jit_enable", "0\n")]).unwrap(),
        "the BPF compiler is off (net.core.bpf_jit_enable=0); turn it on: 'sudo \
         sysctl net.core.bpf_jit_enable=1'",
    );
    documented(
        &missing(&[CALL]).unwrap(),
        "this kernel has no network namespaces; use one with CONFIG_NET_NS",
    );
    documented(
        &missing(&[CALL, NETWORK, (TYPES, "tcp_congestion_ops")]).unwrap(),
        "this kernel accepts no BPF program as a congestion controller (struct_ops); use one with \
         CONFIG_BPF_JIT and CONFIG_BPF_SYSCALL",
    );
    let controllers = "\0bpf_struct_ops_tcp_congestion_ops\0";
    documented(
        &missing(&[CALL, NETWORK, (TYPES, controllers)]).unwrap(),
        "this kernel has no IPv6; use one with CONFIG_IPV6",
    );
    let both = format!("{controllers}skc_v6_daddr\0");
    assert_eq!(missing(&[CALL, NETWORK, (TYPES, &both)]), None);
}

#[test]
fn cgroups_of_both_versions() {
    let place = Place::new(&[
        (
            "/proc/self/mounts",
            "cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n",
        ),
        ("/one/cgroup.procs", ""),
        ("/two/cgroup.procs", ""),
        ("/two/cgroup.controllers", ""),
        ("/none/notes", ""),
    ]);
    let machine = place.machine(0, ALL);
    let found = |name: &str| machine.cgroup(&place.0.join(name));
    let give = "give one of version 2, such as /sys/fs/cgroup/unified/NAME";
    documented(
        &found("one").unwrap(),
        &format!("it is of cgroup version 1; {give}"),
    );
    for name in ["none", "none/notes"] {
        documented(
            &found(name).unwrap(),
            &format!("it is not a cgroup's folder; {give}"),
        );
    }
    documented(
        &found("nowhere").unwrap(),
        &format!("there is no such cgroup; {give}"),
    );
    assert_eq!(found("two"), None);

    let unmounted = Place::new(&[("/one/cgroup.procs", "")]);
    let said = unmounted
        .machine(0, ALL)
        .cgroup(&unmounted.0.join("one"))
        .unwrap();
    let (_, cure) = said.split_once("; ").unwrap();
    assert!(DOCS.contains(&format!("| {cure} |")), "{said}");

    documented(
        &place.machine(0, 0).cgroup_program(),
        "this root has no CAP_NET_ADMIN, as in a container; start the container with \
         --privileged, or with --cap-add NET_ADMIN",
    );
    documented(
        &machine.cgroup_program(),
        "this cgroup or one around it has a program that admits no other; give another cgroup: \
         'sudo bpftool cgroup tree' shows which have programs",
    );
}

/// Checks that a missing capability is the right one, by its number in the kernel.
#[test]
fn own_capabilities_match_the_kernel() {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let bits = u64::from_str_radix(field(&status, "CapEff:").unwrap(), 16).unwrap();
    let here = Machine::here();
    for (capability, number) in [
        (Capability::NetAdmin, 12),
        (Capability::SysAdmin, 21),
        (Capability::Perfmon, 38),
        (Capability::Bpf, 39),
    ] {
        assert_eq!(here.has(capability), bits >> number & 1 == 1);
    }
    assert_eq!(here.uid, geteuid().as_raw());
}
