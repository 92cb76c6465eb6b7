//! Which thread runs where several want the same processor.

use nix::errno::Errno;

/// Lets the calling thread run only while no ordinary thread wants its processor (`SCHED_IDLE`,
/// sched(7)).
///
/// # Errors
/// What the system says.
#[expect(unsafe_code, reason = "no crate that we have wraps the call")]
pub fn yield_to_all() -> Result<(), Errno> {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: `param` lives through the call, and 0 is the calling thread.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const param) };
    Errno::result(result).map(drop)
}
