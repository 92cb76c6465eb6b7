//! The hosts of a shell: each is a namespace with a device that leads to the emulator; the far side
//! is one more.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nix::ifaddrs::getifaddrs;

use super::ShellError;
use super::address::{Slice, ipv6};
use super::path::{DOWN, UP};
use crate::emulator::Way;
use crate::sys::{Namespace, SetupError, Tun, set};

/// The name of a host's device.
const DEVICE: &str = "headway";

/// The destinations of unicast packets, each an address and how many of its bits count. Multicast,
/// by which kernels greet their neighbours, does not leave a host.
const UNICAST: [(IpAddr, u8); 5] = [
    (IpAddr::V4(Ipv4Addr::new(0, 0, 0, 0)), 1),
    (IpAddr::V4(Ipv4Addr::new(128, 0, 0, 0)), 2),
    (IpAddr::V4(Ipv4Addr::new(192, 0, 0, 0)), 3),
    (IpAddr::V6(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0)), 3),
    (IpAddr::V6(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0)), 7),
];

/// The far side, and the hosts inside, before they have addresses.
#[derive(Debug)]
pub struct Hosts {
    /// The far side, through which the shell's packets leave.
    pub far: Namespace,
    /// The hosts on which programs run.
    pub inside: Vec<Namespace>,
    /// Whether all of them have IPv6.
    pub has_ipv6: bool,
}

impl Hosts {
    /// Makes `count` hosts. The far side is the calling thread's namespace, or a new one if
    /// `far_is_new`.
    ///
    /// # Errors
    /// If namespaces cannot be made.
    pub fn create(count: usize, far_is_new: bool) -> Result<Hosts, ShellError> {
        let far = Namespace::current()?;
        let inside = (0..count).map(|_| Namespace::create());
        let inside: Vec<Namespace> = inside.collect::<Result<_, _>>()?;
        for new in inside.iter().chain(far_is_new.then_some(&far)) {
            new.ip("link set lo up\n")?;
            new.within(forward)??;
        }
        Ok(Hosts {
            has_ipv6: far.within(has_ipv6)?,
            far,
            inside,
        })
    }

    /// Makes the devices, and gives each an address of `slice` and routes. Returns the far side's
    /// device first, then those of the hosts.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn connect(&self, slice: Slice) -> Result<Vec<Tun>, ShellError> {
        let name = format!("{DEVICE}{}", slice.index() % Slice::OUTERMOST as u32);
        let mut routes = vec![slice.to_string()];
        if self.has_ipv6 {
            routes.push(slice.ipv6());
        }
        let mut devices = vec![self.device(&self.far, &name, slice.peer(), &routes)?];
        let mut routes = vec!["0.0.0.0/0".to_owned()];
        if self.has_ipv6 {
            routes.push("::/0".to_owned());
        }
        for (host, namespace) in self.inside.iter().enumerate() {
            devices.push(self.device(namespace, DEVICE, slice.host(host), &routes)?);
        }
        Ok(devices)
    }

    fn device(
        &self,
        namespace: &Namespace,
        name: &str,
        address: Ipv4Addr,
        routes: &[String],
    ) -> Result<Tun, ShellError> {
        let tun = namespace.within(|| Tun::create(name))??;
        let mut addresses = vec![format!("{address}/32")];
        // Only programs' packets should be on the link.
        let mut batch = format!("link set {name} multicast off\n");
        if self.has_ipv6 {
            addresses.push(format!("{}/128", ipv6(address)));
            batch += &format!("link set {name} addrgenmode none\n");
        }
        batch += &tun.up(addresses);
        for route in routes {
            batch += &format!("route add {route} dev {name}\n");
        }
        namespace.ip(&batch)?;
        Ok(tun)
    }

    /// The ways of packets between the devices, and the link that each crosses.
    pub fn ways(&self, slice: Slice) -> (Vec<Way>, Vec<usize>) {
        let hosts = self.inside.len();
        let mut ways = Vec::new();
        let mut links = Vec::new();
        let mut add = |from, to, link: usize, port| {
            ways.push(Way {
                from,
                to,
                links: [link as u32].into(),
                port,
                flow: None,
                host_jitter: None,
            });
            links.push(link);
        };
        for host in 0..hosts {
            let port = host + 1;
            for to in slice.of_host(host, hosts) {
                add(0, to, DOWN, port);
            }
            for to in UNICAST {
                add(port, to, UP, 0);
            }
        }
        (ways, links)
    }
}

/// The addresses that the calling thread's namespace has already.
///
/// # Errors
/// If they cannot be read.
pub fn taken_addresses() -> Result<Vec<Ipv4Addr>, ShellError> {
    let found = getifaddrs();
    let found = found.map_err(|e| SetupError::system("read this machine's addresses", e))?;
    let addresses = found.filter_map(|interface| interface.address);
    Ok(addresses
        .filter_map(|address| address.as_sockaddr_in().map(|a| a.ip()))
        .collect())
}

/// Turns on forwarding in the calling thread's namespace, so that there may be a shell inside a
/// shell.
fn forward() -> Result<(), SetupError> {
    set("/proc/sys/net/ipv4/ip_forward", "1")?;
    match has_ipv6() {
        true => set("/proc/sys/net/ipv6/conf/all/forwarding", "1"),
        false => Ok(()),
    }
}

/// Does the calling thread's namespace have IPv6?
fn has_ipv6() -> bool {
    let disabled = fs::read_to_string("/proc/sys/net/ipv6/conf/all/disable_ipv6");
    disabled.is_ok_and(|disabled| disabled.trim() == "0")
}
