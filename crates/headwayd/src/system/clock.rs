//! The clock that the programs have: CLOCK_MONOTONIC.

use headway_cc::Time;
use nix::time::{ClockId, clock_gettime};

/// The time now.
pub fn now() -> Time {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has it");
    Time::from_nanos(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}
