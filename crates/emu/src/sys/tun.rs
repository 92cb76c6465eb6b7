//! TUN devices: where real IP packets enter and leave the emulator.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use headway_machine::Machine;

use super::SetupError;

/// A TUN device. It vanishes when this is dropped.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
}

/// A device's counters, as seen from its namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TunCounters {
    /// Packets that the namespace sent, whether or not they were read here.
    pub sent: u64,
    /// Of these, packets that were dropped because the device's ring was full.
    pub sent_dropped: u64,
    /// Packets that were written to the device here.
    pub received: u64,
    /// Of these, packets that the namespace did not take.
    pub received_dropped: u64,
}

/// The bytes of one IP packet.
pub type Datagram = [u8; Tun::MTU];

nix::ioctl_write_ptr_bad!(
    #[allow(unsafe_code)]
    tun_set_iff,
    libc::TUNSETIFF,
    libc::ifreq
);

impl Tun {
    /// The largest packet.
    pub const MTU: usize = 1500;
    /// The most packets that wait for the emulator: 12 ms of full packets at 1 Gbit/s.
    pub const RING: usize = 1000;

    /// Makes a device in the calling thread's network namespace. It is down and has no address.
    ///
    /// # Errors
    /// Without the privilege, without `/dev/net/tun`, or if the name is taken or too long.
    #[allow(unsafe_code)]
    pub fn create(name: &str) -> Result<Tun, SetupError> {
        let failed = |e: io::Error| {
            let why = Machine::here().tun_device(&e);
            SetupError::refused(format!("make TUN device '{name}'"), why)
        };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(Machine::TUN)
            .map_err(|e| {
                let why = Machine::here().tun(&e);
                SetupError::refused(format!("open {}", Machine::TUN), why)
            })?;
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || !name.is_ascii() {
            return Err(failed(io::Error::from(io::ErrorKind::InvalidInput)));
        }
        // SAFETY: `ifreq` is plain data, for which zeros are valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        // Packets have no header before them. Offload was not requested, so there is none.
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the request lives through the call, and its name ends with a zero.
        unsafe { tun_set_iff(file.as_raw_fd(), &raw const request) }
            .map_err(|e| failed(e.into()))?;
        let name = name.to_owned();
        Ok(Tun { file, name })
    }

    /// The device's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The lines for [`Namespace::ip`](super::Namespace::ip) that give the device addresses (with
    /// their prefix lengths) and bring it up.
    pub fn up<A: std::fmt::Display>(&self, addresses: impl IntoIterator<Item = A>) -> String {
        let name = &self.name;
        let mut batch = String::new();
        for address in addresses {
            batch += &format!("addr add {address} dev {name} noprefixroute nodad\n");
        }
        batch
            + &format!(
                "link set {name} mtu {} txqueuelen {} up\n",
                Tun::MTU,
                Tun::RING
            )
    }

    /// Reads the next packet that the namespace has sent. Returns how many bytes of `into` it
    /// takes; `None` if there is no packet.
    ///
    /// # Errors
    /// If the device does not exist any more, or is down.
    #[inline]
    pub fn read(&self, into: &mut Datagram) -> io::Result<Option<usize>> {
        match (&self.file).read(into) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Hands a packet to the namespace.
    ///
    /// # Errors
    /// If the namespace does not take it.
    #[inline]
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        (&self.file).write(packet).map(|_| ())
    }

    /// Reads the device's counters. Call it within the device's namespace.
    ///
    /// # Errors
    /// If /proc cannot be read.
    pub fn counters(&self) -> io::Result<TunCounters> {
        let table = fs::read_to_string("/proc/thread-self/net/dev")?;
        let missing = || {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("no device '{}'", self.name),
            )
        };
        counters_of(&table, &self.name).ok_or_else(missing)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The counters of a device in the format of `/proc/net/dev`.
fn counters_of(table: &str, name: &str) -> Option<TunCounters> {
    let mut lines = table.lines().filter_map(|line| line.split_once(':'));
    let (_, values) = lines.find(|(device, _)| device.trim() == name)?;
    let values: Vec<u64> = values
        .split_whitespace()
        .map_while(|v| v.parse().ok())
        .collect();
    // The table has sixteen columns: received bytes, packets, errs, drop, ...; sent bytes, packets,
    // errs, drop, ...
    let dropped = *values.get(11)?;
    Some(TunCounters {
        received: values[1] + values[3],
        received_dropped: values[3],
        sent: values[9] + dropped,
        sent_dropped: dropped,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_counters_are_read_from_proc() {
        let table = "Inter-|   Receive                            |  Transmit\n \
             face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
             lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0\n\
             inner:  150000     100    0    2    0     0          0         0   300000     200    0    7    0     0       0          0\n";
        let found = counters_of(table, "inner").unwrap();
        let wanted = TunCounters {
            sent: 207,
            sent_dropped: 7,
            received: 102,
            received_dropped: 2,
        };
        assert_eq!(found, wanted);
        assert_eq!(counters_of(table, "inne"), None);
    }
}
