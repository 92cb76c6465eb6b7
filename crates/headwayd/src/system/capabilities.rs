//! The capabilities of an agent that serves: only those that it needs.

use caps::{CapSet, Capability, CapsHashSet};

use crate::error::{Error, Result};

/// Explains why a model that was readable at the start is not readable any more: the agent has
/// given up capabilities.
pub fn explain(error: Error) -> Error {
    match error.to_string() {
        text if text.contains("Permission denied") => Error::Failed(format!(
            "{text}; a headwayd that serves has no CAP_DAC_OVERRIDE: its user must own the file, or have the right to read it"
        )),
        _ => error,
    }
}

/// Keeps CAP_BPF and CAP_PERFMON, and CAP_NET_ADMIN if the agent has to restore a setting when it
/// ends. Gives up all other capabilities for good.
///
/// # Errors
/// One line, if the kernel does not permit it.
pub fn drop_all_others(needs_net_admin: bool) -> Result<()> {
    let failed = |e| Error::failed("cannot drop capabilities", e);
    let mut wanted = CapsHashSet::from([Capability::CAP_BPF, Capability::CAP_PERFMON]);
    if needs_net_admin {
        wanted.insert(Capability::CAP_NET_ADMIN);
    }
    let held = caps::read(None, CapSet::Permitted).map_err(failed)?;
    let kept: CapsHashSet = wanted.intersection(&held).copied().collect();
    let may_shrink = held.contains(&Capability::CAP_SETPCAP);
    if may_shrink {
        for other in caps::all().difference(&kept) {
            if caps::has_cap(None, CapSet::Bounding, *other).unwrap_or(false) {
                caps::drop(None, CapSet::Bounding, *other).map_err(failed)?;
            }
        }
    }
    caps::clear(None, CapSet::Ambient).map_err(failed)?;
    caps::clear(None, CapSet::Inheritable).map_err(failed)?;
    caps::set(None, CapSet::Effective, &kept).map_err(failed)?;
    caps::set(None, CapSet::Permitted, &kept).map_err(failed)
}
