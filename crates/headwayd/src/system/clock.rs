//! The clock that the programs have, CLOCK_MONOTONIC, and the calendar's.

use headway_cc::Time;
use nix::time::{ClockId, clock_gettime};

/// The time now.
pub fn now() -> Time {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has it");
    Time::from_nanos(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

/// Seconds since 1970.
pub fn unix_time() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_REALTIME).expect("every Linux has it");
    now.tv_sec() as u64
}
