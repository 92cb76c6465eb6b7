//! The right to make network namespaces.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use headway_machine::{Capability, Machine};
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use super::SetupError;

/// By which right namespaces are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// Root may make them.
    Root,
    /// Root of a new user namespace may make them, but cannot reach the caller's network.
    UserNamespace,
}

/// Makes sure that this process may make network namespaces: as it is, or as root of a new user
/// namespace, which it stays in from then on.
///
/// # Errors
/// If neither is permitted, or if this process has several threads and would need a user namespace.
pub fn become_able() -> Result<Privilege, SetupError> {
    // This has to come first: in a new namespace its rights are different.
    let machine = Machine::here();
    let needed = [Capability::SysAdmin, Capability::NetAdmin];
    if needed.iter().all(|one| machine.has(*one)) && !is_network_of_others() {
        return Ok(Privilege::Root);
    }
    let (uid, gid) = (geteuid(), getegid());
    let refused =
        |what: &str, error: io::Error| SetupError::refused(what, machine.user_namespace(&error));
    // It needs a network namespace of its own too: without one it has no right over any.
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)
        .map_err(|e| refused("make namespaces", e.into()))?;
    let write = |name: &str, text: &str| {
        let path = format!("/proc/self/{name}");
        fs::write(&path, text).map_err(|e| refused(&format!("write {path}"), e))
    };
    write("setgroups", "deny")?;
    write("uid_map", &format!("0 {uid} 1"))?;
    write("gid_map", &format!("0 {gid} 1"))?;
    Ok(Privilege::UserNamespace)
}

/// Does the network belong to a surrounding user namespace? Then root of this one may not change
/// it, as after `unshare -r`.
#[allow(unsafe_code)]
fn is_network_of_others() -> bool {
    // From <linux/nsfs.h>.
    nix::ioctl_none!(user_namespace_of, 0xb7, 1);
    let Ok(network) = File::open("/proc/thread-self/ns/net") else {
        return false;
    };
    // SAFETY: the request takes no argument; the descriptor is open.
    match unsafe { user_namespace_of(network.as_raw_fd()) } {
        // The kernel names only namespaces within the caller's.
        Err(error) => error == Errno::EPERM,
        Ok(descriptor) => {
            // SAFETY: the descriptor is new, and nothing else owns it.
            drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
            false
        }
    }
}
