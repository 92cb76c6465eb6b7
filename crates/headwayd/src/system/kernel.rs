//! The features of the running kernel.

use std::fs;

use headway_machine::Machine;
use nix::sys::time::TimeValLike;
use nix::sys::utsname::uname;
use nix::time::{ClockId, clock_getres};

use crate::error::{Error, Result};
use crate::programs::Controller;

/// Checks that this kernel has what a controller needs.
///
/// # Errors
/// One line, if it is too old or has no type information.
pub fn check(controller: Controller) -> Result<()> {
    let running = uname().map_err(|e| Error::failed("cannot ask for the kernel's version", e))?;
    let release = running.release().to_string_lossy();
    check_release(controller, &release)?;
    match Machine::here().types() {
        None => Ok(()),
        Some(why) => Err(Error::Failed(why)),
    }
}

/// Does this kernel register controllers by links? Then a controller stays registered only while a
/// process or a pin holds its link. That is so since Linux 6.4.
pub fn has_links() -> bool {
    is_since((6, 4))
}

/// Does `tcp_congestion_ops` have `cwnd_event_tx_start`? It has since Linux 7.1.
pub fn has_tx_start() -> bool {
    is_since((7, 1))
}

fn is_since(oldest: (u32, u32)) -> bool {
    let running = uname().map(|running| running.release().to_string_lossy().into_owned());
    version(&running.unwrap_or_default()).is_none_or(|version| version >= oldest)
}

/// Does the kernel have BBR? It may be a module that is not loaded.
pub fn has_bbr() -> bool {
    has_controller("bbr")
}

/// Can sockets choose a controller of this name?
pub fn has_controller(name: &str) -> bool {
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    available.is_ok_and(|names| names.split_whitespace().any(|one| one == name))
}

/// The number of jiffies in a second, which is the resolution of the kernel's coarse clocks.
///
/// # Errors
/// One line, if the kernel does not tell the resolution.
pub fn hz() -> Result<u32> {
    let jiffy = clock_getres(ClockId::CLOCK_MONOTONIC_COARSE)
        .map_err(|e| Error::failed("cannot ask for the kernel's HZ", e))?;
    Ok((1e9 / jiffy.num_nanoseconds() as f64).round() as u32)
}

/// The version of a release; `None` if the release does not begin with one. Loading a program then
/// shows whether the kernel is new enough.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn check_release(controller: Controller, release: &str) -> Result<()> {
    let oldest = controller.oldest_kernel();
    match version(release).is_none_or(|version| version >= oldest) {
        true => Ok(()),
        false => Err(Error::Failed(format!(
            "{} needs Linux {}.{} or newer; this is {release}",
            controller.name(),
            oldest.0,
            oldest.1
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_kernel_is_refused_in_one_line() {
        let check = |c, release| check_release(c, release).map_err(|e| e.to_string());
        for fits in ["6.1.0-18-amd64", "6.18.44-fc-v669", "7.0", "mine"] {
            assert_eq!(check(Controller::Owl, fits), Ok(()));
        }
        assert_eq!(
            check(Controller::Bbr, "6.8.0-generic"),
            Err("headway_bbr needs Linux 6.10 or newer; this is 6.8.0-generic".to_owned())
        );
        assert!(check(Controller::Owl, "5.15.2").is_err());
    }

    #[test]
    fn a_release_begins_with_its_version() {
        for (release, expected) in [
            ("6.1.0-56-cloud-amd64", Some((6, 1))),
            ("6.12.117+deb12-cloud-amd64", Some((6, 12))),
            ("6.4-rc1", Some((6, 4))),
            ("mine", None),
            ("", None),
        ] {
            assert_eq!(version(release), expected);
        }
    }

    #[test]
    fn hz_is_a_value_that_kernels_have() {
        // These are the values of kernel/Kconfig.hz, and of other architectures.
        assert!(
            [24, 32, 48, 64, 100, 128, 250, 256, 300, 1000, 1024, 1200].contains(&hz().unwrap())
        );
    }
}
