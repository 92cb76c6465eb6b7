//! The scheduling of threads that compete for a processor.

use nix::errno::Errno;

/// Lets the calling thread run only while no ordinary thread wants its processor (`SCHED_IDLE`,
/// sched(7)).
///
/// # Errors
/// The system's error.
#[expect(unsafe_code, reason = "no crate here wraps the call")]
pub fn yield_to_all() -> Result<(), Errno> {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: `param` lives through the call, and 0 is the calling thread.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const param) };
    Errno::result(result).map(drop)
}
