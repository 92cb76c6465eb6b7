//! The right to make network namespaces.

use std::fs;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use super::SetupError;

/// By what right namespaces are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// Root's.
    Root,
    /// That of a user namespace of one's own, in which the caller's network is out of reach.
    UserNamespace,
}

/// Makes sure that this process may make network namespaces: as it is, or in a new user namespace, which
/// it is in from then on, as its root.
///
/// # Errors
/// If neither is permitted, or if this process has several threads and would need a user namespace.
pub fn become_able() -> Result<Privilege, SetupError> {
    if may_administer() {
        return Ok(Privilege::Root);
    }
    let (uid, gid) = (geteuid(), getegid());
    let refused = |e| {
        SetupError::system(
            "make namespaces: run as root, or permit unprivileged user namespaces (sysctl \
             kernel.unprivileged_userns_clone=1 on Debian, kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu)",
            e,
        )
    };
    // A network of its own too: without it there is no right over any.
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET).map_err(refused)?;
    let write = |name: &str, text: &str| {
        let path = format!("/proc/self/{name}");
        fs::write(&path, text).map_err(|e| SetupError::system(format!("write {path}"), e))
    };
    write("setgroups", "deny")?;
    write("uid_map", &format!("0 {uid} 1"))?;
    write("gid_map", &format!("0 {gid} 1"))?;
    Ok(Privilege::UserNamespace)
}

/// `CAP_SYS_ADMIN` and `CAP_NET_ADMIN`, both of which it takes.
fn may_administer() -> bool {
    const NET_ADMIN: u32 = 12;
    const SYS_ADMIN: u32 = 21;
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let mut lines = status.lines();
    let effective = lines.find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    bits.is_some_and(|bits| bits & 1 << NET_ADMIN != 0 && bits & 1 << SYS_ADMIN != 0)
}
