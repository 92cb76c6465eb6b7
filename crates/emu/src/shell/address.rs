//! The addresses of shells. A shell has a slice of the addresses and gives parts of it to the
//! shells that are started inside, so that packets find their way through all of them without
//! translation.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A block of IPv4 addresses, and the IPv6 addresses that end in them. It has sixteen slots: the
/// first is for the shell's own hosts, the others are for shells inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    first: u32,
    prefix: u8,
}

/// 100.64.0.0/10 is for networks that share addresses (RFC 6598): no public host has one, and
/// private networks rarely do.
const ALL: Slice = Slice {
    first: 0x6440_0000,
    prefix: 10,
};
/// A unique local prefix (RFC 4193); "headw" in ASCII is as good as any random number.
const IPV6: u128 = 0xfd68_6561_6477 << 80;
const IPV6_PREFIX: u8 = 96;

impl Slice {
    /// The most outermost shells at a time.
    pub const OUTERMOST: usize = 64;
    /// The most shells at a time inside one.
    pub const INNER: usize = Self::SLOTS as usize - 1;
    /// The most hosts of a shell; one machine cannot run a useful experiment with more.
    pub const MOST_HOSTS: usize = 64;

    const OUTERMOST_PREFIX: u8 = 16;
    const INNERMOST_PREFIX: u8 = 28;
    const SLOT_BITS: u8 = 4;
    const SLOTS: u32 = 1 << Self::SLOT_BITS;

    /// The slices that an outermost shell may have.
    pub fn outermost() -> impl Iterator<Item = Slice> {
        (0..Self::OUTERMOST as u32).map(|index| Slice {
            first: ALL.first + (index << (32 - Self::OUTERMOST_PREFIX)),
            prefix: Self::OUTERMOST_PREFIX,
        })
    }

    /// The slices for a shell that is started inside, on host `host` (from 0) of `hosts`; none if
    /// there are too many shells around it.
    pub fn inner(&self, host: usize, hosts: usize) -> impl Iterator<Item = Slice> + use<> {
        let slice = *self;
        let slots = match slice.prefix < Self::INNERMOST_PREFIX {
            true => 1..Self::SLOTS,
            false => 0..0,
        };
        slots
            .filter(move |slot| (*slot as usize - 1) % hosts == host)
            .map(move |slot| Slice {
                first: slice.first + (slot << slice.slot_shift()),
                prefix: slice.prefix + Self::SLOT_BITS,
            })
    }

    /// The most hosts for which this slice has addresses.
    pub fn most_hosts(&self) -> usize {
        let own = match self.prefix < Self::INNERMOST_PREFIX {
            true => 1 << self.slot_shift(),
            false => 1usize << (32 - self.prefix),
        };
        // The first address is unused. The far side has the second.
        (own - 2).min(Self::MOST_HOSTS)
    }

    /// The far side's address.
    pub fn peer(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.first + 1)
    }

    /// The address of host `host`, from 0.
    pub fn host(&self, host: usize) -> Ipv4Addr {
        Ipv4Addr::from(self.first + 2 + host as u32)
    }

    /// The destinations of packets for host `host` of `hosts`, each an address and how many of its
    /// bits count: the host's own address, and those of shells that are started on it. Every host
    /// has a fixed share, so a new shell changes no routes.
    pub fn of_host(&self, host: usize, hosts: usize) -> Vec<(IpAddr, u8)> {
        let own = (self.host(host), 32);
        let inner = self.inner(host, hosts);
        let inner = inner.map(|slice| (Ipv4Addr::from(slice.first), slice.prefix));
        std::iter::once(own)
            .chain(inner)
            .flat_map(|(address, bits)| {
                let sixth = (IpAddr::V6(ipv6(address)), IPV6_PREFIX + bits);
                [(IpAddr::V4(address), bits), sixth]
            })
            .collect()
    }

    /// The slice's index among slices of its size.
    pub fn index(&self) -> u32 {
        (self.first - ALL.first) >> (32 - self.prefix)
    }

    /// Is `address` in this slice?
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        (u32::from(address) ^ self.first) >> (32 - self.prefix) == 0
    }

    /// The IPv6 addresses that go with these, in the format of `ip route`.
    pub fn ipv6(&self) -> String {
        let first = ipv6(Ipv4Addr::from(self.first));
        format!("{first}/{}", IPV6_PREFIX + self.prefix)
    }

    fn slot_shift(&self) -> u8 {
        32 - self.prefix - Self::SLOT_BITS
    }
}

/// The IPv6 address of the side that has `address`.
pub fn ipv6(address: Ipv4Addr) -> Ipv6Addr {
    Ipv6Addr::from(IPV6 | u128::from(u32::from(address)))
}

/// The format of `ip route`.
impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.first), self.prefix)
    }
}

impl std::str::FromStr for Slice {
    type Err = ();

    fn from_str(text: &str) -> Result<Slice, ()> {
        let (first, prefix) = text.split_once('/').ok_or(())?;
        let first = u32::from(first.parse::<Ipv4Addr>().map_err(|_| ())?);
        let prefix = prefix.parse::<u8>().map_err(|_| ())?;
        let fits = (Self::OUTERMOST_PREFIX..=Self::INNERMOST_PREFIX).contains(&prefix);
        match fits && ALL.contains(first.into()) && first.trailing_zeros() >= u32::from(32 - prefix)
        {
            true => Ok(Slice { first, prefix }),
            false => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_shells_inside_each_other_have_nested_slices() {
        let mut slice = Slice::outermost().next().unwrap();
        let mut shown = vec![slice.to_string()];
        while let Some(inner) = slice.inner(0, 1).next() {
            shown.push(inner.to_string());
            slice = inner;
        }
        let wanted = [
            "100.64.0.0/16",
            "100.64.16.0/20",
            "100.64.17.0/24",
            "100.64.17.16/28",
        ];
        assert_eq!(shown, wanted);
        assert_eq!(slice.ipv6(), "fd68:6561:6477::6440:1110/124");
        assert_eq!(slice.most_hosts(), 14);
    }

    #[test]
    fn outermost_slices_fill_the_rfc_6598_block() {
        let all: Vec<Slice> = Slice::outermost().collect();
        assert_eq!(all.len(), 64);
        assert_eq!(all[63].to_string(), "100.127.0.0/16");
        let text = |slice: &Slice| slice.to_string().parse();
        assert!(all.iter().all(|slice| text(slice) == Ok(*slice)));
    }

    #[test]
    fn every_host_has_its_share() {
        let slice = Slice::outermost().next().unwrap();
        let of = |host| {
            let all = slice.of_host(host, 3).into_iter();
            let shown = all.map(|(address, bits)| format!("{address}/{bits}"));
            shown.collect::<Vec<_>>()
        };
        assert_eq!(of(0)[..2], ["100.64.0.2/32", "fd68:6561:6477::6440:2/128"]);
        // A shell on the second host has the second, fifth, ... slot.
        assert_eq!(
            of(1)[..3],
            [
                "100.64.0.3/32",
                "fd68:6561:6477::6440:3/128",
                "100.64.32.0/20"
            ]
        );
        assert_eq!(of(1)[5], "fd68:6561:6477::6440:5000/116");
        let mut all: Vec<String> = (0..3).flat_map(of).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 2 * (3 + 15));
    }

    #[test]
    fn malformed_slices_are_refused() {
        for text in [
            "",
            "100.64.0.0",
            "100.64.0.1/16",
            "10.0.0.0/16",
            "100.64.0.0/8",
            "100.64.0.0/33",
        ] {
            assert_eq!(text.parse::<Slice>(), Err(()), "{text}");
        }
    }
}
