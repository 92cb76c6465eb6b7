//! The scheduling of threads that compete for a processor.

use std::thread::Builder;

use nix::errno::Errno;

use crate::error::{Error, Result};

/// Ends what the agent's thread may have over others (`Nice=` in the unit), for the calling thread.
#[expect(unsafe_code, reason = "no crate here wraps the calls")]
fn reset() {
    // SAFETY: both take numbers; 0 is the calling thread.
    unsafe {
        if libc::getpriority(libc::PRIO_PROCESS, 0) < 0 {
            libc::setpriority(libc::PRIO_PROCESS, 0, 0);
        }
    }
}

/// Starts a thread that has ordinary priority. The thread that answers flows may have more.
///
/// # Errors
/// One line, if the system has no room for a thread.
pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
    let run = || {
        reset();
        run();
    };
    let started = Builder::new().name(name.to_owned()).spawn(run);
    started
        .map(drop)
        .map_err(|e| Error::failed(format!("cannot start the thread {name:?}"), e))
}

/// Lets the calling thread run only while no ordinary thread wants its processor (`SCHED_IDLE`,
/// sched(7)).
///
/// # Errors
/// The system's error.
#[expect(unsafe_code, reason = "no crate here wraps the call")]
pub fn yield_to_all() -> std::result::Result<(), Errno> {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: `param` lives through the call, and 0 is the calling thread.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const param) };
    Errno::result(result).map(drop)
}
