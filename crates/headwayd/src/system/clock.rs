//! The clock that the BPF programs use, CLOCK_MONOTONIC, and the time of day.

use std::fs;

use headway_cc::Time;
use nix::time::{ClockId, clock_gettime};

use crate::error::{Error, Result};

/// The file with the clock offsets of the time namespace (time_namespaces(7)).
const OFFSETS: &str = "/proc/self/timens_offsets";

/// Checks that this process has the same clock as the BPF programs, which always use the host's.
///
/// # Errors
/// One line, if a time namespace moves the clock.
pub fn check() -> Result<()> {
    // A kernel without time namespaces has no such file.
    check_offsets(&fs::read_to_string(OFFSETS).unwrap_or_default())
}

fn check_offsets(offsets: &str) -> Result<()> {
    match monotonic_offset(offsets) {
        None | Some((0, 0)) => Ok(()),
        Some((secs, nanos)) => Err(Error::Failed(format!(
            "this time namespace moves CLOCK_MONOTONIC by {} s ({OFFSETS}), but BPF programs use the host's clock; run headwayd in the host's time namespace",
            secs as f64 + nanos as f64 * 1e-9
        ))),
    }
}

/// The offset of CLOCK_MONOTONIC in seconds and nanoseconds.
fn monotonic_offset(offsets: &str) -> Option<(i64, i64)> {
    let mut lines = offsets.lines().map(str::split_whitespace);
    lines.find_map(|mut words| {
        // Linux 5.6 writes the clock's number.
        let is_monotonic = matches!(words.next()?, "monotonic" | "1");
        let mut number = || words.next()?.parse().ok();
        is_monotonic.then_some((number()?, number()?))
    })
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux 5.6 writes these offsets in another way than later versions.
    #[test]
    fn a_time_namespace_with_another_monotonic_clock_is_refused_in_one_line() {
        let check = |offsets| check_offsets(offsets).map_err(|e| e.to_string());
        for (offsets, moved) in [
            (
                "monotonic        1000         0\nboottime            0         0\n",
                "by 1000 s",
            ),
            ("boottime 7 0\nmonotonic -1 500000000\n", "by -0.5 s"),
            ("1 0 250000000\n7 0 0\n", "by 0.25 s"),
        ] {
            let refused = check(offsets).expect_err(moved);
            assert!(
                refused.contains(moved) && !refused.contains('\n'),
                "{refused}"
            );
        }
        let is_host = "monotonic           0         0\nboottime            5         0\n";
        for fits in [is_host, "1 0 0\n7 5 0\n", ""] {
            assert_eq!(check(fits), Ok(()));
        }
    }
}
