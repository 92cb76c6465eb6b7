//! TUN devices.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use nix::sys::stat::makedev;
use nix::sys::statvfs::{FsFlags, statvfs};

use super::{Capability, IN_ITS_LOG, Machine, line};

const TUN: &str = Machine::TUN;

impl Machine {
    /// The file by which TUN devices are made.
    pub const TUN: &str = "/dev/net/tun";

    /// Why /dev/net/tun cannot be opened.
    pub fn tun(&self, error: &io::Error) -> String {
        if let Some(why) = self.other_than_tun() {
            return why;
        }
        let node = self.path(TUN);
        let found = fs::metadata(&node);
        match error.raw_os_error() {
            Some(libc::ENOENT) => line(
                "there is no such device",
                "load the module ('sudo modprobe tun'); start a container with --device \
                 /dev/net/tun",
            ),
            Some(libc::ENODEV | libc::ENXIO) => line(
                "the kernel has no driver for it",
                "load the module ('sudo modprobe tun'), or use a kernel with CONFIG_TUN",
            ),
            Some(libc::EPERM) => line(
                "the cgroup's rules for devices forbid it, as in a container",
                "start the container with --device /dev/net/tun (a unit of systemd: \
                 DeviceAllow=/dev/net/tun rw)",
            ),
            Some(libc::EACCES) => {
                let is_on_nodev =
                    statvfs(&node).is_ok_and(|found| found.flags().contains(FsFlags::ST_NODEV));
                match found {
                    _ if is_on_nodev => line(
                        "it is on a mount with the option 'nodev'",
                        "mount it again without that option ('sudo mount -o remount,dev'); start a container \
                         with --device /dev/net/tun",
                    ),
                    Ok(found) if found.mode() & 0o006 != 0o006 => line(
                        format_args!("its mode is {:04o}", found.mode() & 0o7777),
                        format_args!(
                            "let users open it: 'sudo chmod 0666 {TUN}', or run it as root"
                        ),
                    ),
                    _ => line("a security module, such as SELinux, forbids it", IN_ITS_LOG),
                }
            }
            _ => error.to_string(),
        }
    }

    /// Why a TUN device cannot be made although /dev/net/tun is open. Root may open a file of any
    /// kind.
    pub fn tun_device(&self, error: &io::Error) -> String {
        if let Some(why) = self.other_than_tun() {
            return why;
        }
        match error.raw_os_error() {
            Some(libc::EPERM) => self.lacks(&[Capability::NetAdmin]),
            Some(libc::EBUSY) => Some(line(
                "a device of that name exists already",
                "end what made it: 'ip link' shows it, and 'headway shell --list' the shells",
            )),
            _ => None,
        }
        .unwrap_or_else(|| error.to_string())
    }

    /// The error if /dev/net/tun is something else, such as a file.
    fn other_than_tun(&self) -> Option<String> {
        let found = fs::metadata(self.path(TUN)).ok()?;
        let is_tun = found.file_type().is_char_device() && found.rdev() == makedev(10, 200);
        (!is_tun).then(|| {
            line(
                "it is not the character device 10:200",
                format_args!(
                    "make it again: 'sudo rm -r {TUN}; sudo mknod -m 0666 {TUN} c 10 200'"
                ),
            )
        })
    }
}
