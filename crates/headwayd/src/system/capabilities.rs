//! What the agent may do once it serves: no more than it needs.

use caps::{CapSet, Capability, CapsHashSet};

use crate::error::{Error, Result};

/// What to say of a model that was readable at the start, and is not once capabilities are given
/// up.
pub fn explain(error: Error) -> Error {
    match error.to_string() {
        text if text.contains("Permission denied") => Error::Failed(format!(
            "{text}; once it serves headwayd has no CAP_DAC_OVERRIDE: its user has to own the file, or may read it"
        )),
        _ => error,
    }
}

/// Keeps CAP_BPF and CAP_PERFMON, and CAP_NET_ADMIN where it has to set something back at its end,
/// and gives up the rest for good. Without any of them there is nothing to give up.
///
/// # Errors
/// If the kernel does not let it.
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
