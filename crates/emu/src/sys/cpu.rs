//! A thread's priority and processor time.

use std::fs::File;
use std::io::Write;

use headway_cc::Duration;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// Gives the calling thread a higher priority than all ordinary ones (`SCHED_FIFO`), where that is
/// permitted, and lets its timers fire without slack. Returns whether it was permitted.
#[allow(unsafe_code)]
pub fn real_time(priority: i32) -> bool {
    // This helps ordinary threads too, whose timers may otherwise be 50 us late.
    let _ = nix::sys::prctl::set_timerslack(1);
    let param = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: `param` lives through the call, and 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) == 0 }
}

/// Keeps the machine's processors from sleeping until the returned file is closed, where that is
/// permitted. To wake one up takes 30 us here, as long as everything else that a packet needs
/// (Linux, Documentation/power/pm_qos_interface.rst).
pub fn stay_awake() -> Option<File> {
    let mut request = File::options()
        .write(true)
        .open("/dev/cpu_dma_latency")
        .ok()?;
    // The longest acceptable time to wake up, in us.
    request.write_all(&0_i32.to_ne_bytes()).ok()?;
    Some(request)
}

/// Processor time that the calling thread has used.
pub fn cpu_time() -> Duration {
    match getrusage(UsageWho::RUSAGE_THREAD) {
        Ok(usage) => {
            let us = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
            Duration::from_nanos(us.max(0) as u64 * 1000)
        }
        Err(_) => Duration::ZERO,
    }
}
