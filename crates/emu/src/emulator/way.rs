//! Which links a packet crosses, and where it leaves.

use std::collections::HashMap;
use std::net::IpAddr;

use headway_cc::{Duration, Stream};

/// Packets from a port to some addresses.
#[derive(Clone, Debug)]
pub struct Way {
    /// The index of the port at which they enter.
    pub from: usize,
    /// The packets' destinations: an address, and how many of its leading bits have to agree.
    pub to: (IpAddr, u8),
    /// The indices of the links that they cross, in order; at least one.
    pub links: Box<[u32]>,
    /// The index of the port at which they leave.
    pub port: usize,
    /// The `flow` of these packets if they all belong to one flow; `None` tells connections apart.
    pub flow: Option<u32>,
    /// The host at the end takes up to this long, drawn for each packet, before it has it.
    pub host_jitter: Option<(Duration, Stream)>,
}

/// All ways, by port and destination. The first that fits is taken.
#[derive(Debug, Default)]
pub(super) struct Ways {
    pub(super) all: Vec<Way>,
    /// The ways to single addresses, of which there may be many.
    exact: HashMap<(usize, IpAddr), u32>,
    prefixes: Vec<u32>,
}

impl Ways {
    pub(super) fn new(all: Vec<Way>) -> Ways {
        let mut ways = Ways::default();
        for (index, way) in all.iter().enumerate() {
            let (address, bits) = way.to;
            if bits == length(address) {
                ways.exact
                    .entry((way.from, address))
                    .or_insert(index as u32);
            } else {
                ways.prefixes.push(index as u32);
            }
        }
        ways.all = all;
        ways
    }

    /// The way of a packet for `to` that enters at `port`.
    pub(super) fn find(&self, port: usize, to: IpAddr) -> Option<u32> {
        if let Some(&way) = self.exact.get(&(port, to)) {
            return Some(way);
        }
        let mut prefixes = self.prefixes.iter().copied();
        prefixes.find(|&index| {
            let way = &self.all[index as usize];
            way.from == port && agrees(way.to, to)
        })
    }
}

const fn length(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// Do the first `bits` bits agree?
fn agrees((prefix, bits): (IpAddr, u8), address: IpAddr) -> bool {
    match (prefix, address) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            let different = a.to_bits() ^ b.to_bits();
            different.leading_zeros() >= u32::from(bits)
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            let different = a.to_bits() ^ b.to_bits();
            different.leading_zeros() >= u32::from(bits)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(from: usize, to: &str, bits: u8) -> Way {
        Way {
            from,
            to: (to.parse().unwrap(), bits),
            links: [0].into(),
            port: 1,
            flow: None,
            host_jitter: None,
        }
    }

    #[test]
    fn ways_are_found_by_port_and_prefix() {
        let ways = Ways::new(vec![
            way(0, "10.1.0.0", 16),
            way(0, "10.1.2.3", 32),
            way(1, "10.1.2.3", 32),
            way(0, "::", 0),
        ]);
        let find = |port, to: &str| ways.find(port, to.parse().unwrap());
        assert_eq!(find(0, "10.1.2.3"), Some(1), "an address before a prefix");
        assert_eq!(find(0, "10.1.2.4"), Some(0));
        assert_eq!(find(1, "10.1.2.3"), Some(2));
        assert_eq!(find(1, "10.1.2.4"), None);
        assert_eq!(find(0, "10.2.0.0"), None);
        assert_eq!(find(0, "fd00::1"), Some(3), "no bits agree with anything");
    }
}
