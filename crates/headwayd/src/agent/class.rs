//! Classes of destinations. A flow starts from what flows to the same class have learned.

use std::fmt::{self, Display, Formatter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Addresses that only hosts of one network can reach. The IANA registries of special-purpose
/// addresses call them not "globally reachable" (RFC 6890, as of November 2026). [`EXCEPTIONS`]
/// lists the exceptions.
const NOT_GLOBAL: [IpNet; 26] = [
    v4([0, 0, 0, 0], 8),                       // this network (RFC 791)
    v4([10, 0, 0, 0], 8),                      // private use (RFC 1918)
    v4([100, 64, 0, 0], 10),                   // carrier-grade NAT (RFC 6598)
    v4([127, 0, 0, 0], 8),                     // loopback (RFC 1122)
    v4([169, 254, 0, 0], 16),                  // link-local (RFC 3927)
    v4([172, 16, 0, 0], 12),                   // private use (RFC 1918)
    v4([192, 0, 0, 0], 24),                    // IETF protocol assignments (RFC 6890)
    v4([192, 0, 2, 0], 24),                    // documentation (RFC 5737)
    v4([192, 88, 99, 2], 32),                  // 6a44 relay (RFC 6751)
    v4([192, 168, 0, 0], 16),                  // private use (RFC 1918)
    v4([198, 18, 0, 0], 15),                   // benchmarking (RFC 2544)
    v4([198, 51, 100, 0], 24),                 // documentation (RFC 5737)
    v4([203, 0, 113, 0], 24),                  // documentation (RFC 5737)
    v4([240, 0, 0, 0], 4),                     // reserved (RFC 1112); the limited broadcast address
    v6([0, 0, 0, 0, 0, 0, 0, 0], 128),         // unspecified (RFC 4291)
    v6([0, 0, 0, 0, 0, 0, 0, 1], 128),         // loopback (RFC 4291)
    v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48),  // local-use translation (RFC 8215)
    v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64),      // discard-only (RFC 6666)
    v6([0x100, 0, 0, 1, 0, 0, 0, 0], 64),      // dummy prefix (RFC 9780)
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),     // IETF protocol assignments (RFC 2928)
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), // documentation (RFC 3849)
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),     // documentation (RFC 9637)
    v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16),     // segment routing (RFC 9602)
    v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7),      // unique local (RFC 4193)
    v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),     // link-local (RFC 4291)
    v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10),     // site-local, deprecated (RFC 3879)
];

/// Parts of [`NOT_GLOBAL`] that the registries call globally reachable, or leave open.
const EXCEPTIONS: [IpNet; 10] = [
    v4([192, 0, 0, 9], 32),  // Port Control Protocol anycast (RFC 7723)
    v4([192, 0, 0, 10], 32), // TURN anycast (RFC 8155)
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), // Teredo (RFC 4380)
    v6([0x2001, 1, 0, 0, 0, 0, 0, 1], 128), // Port Control Protocol anycast (RFC 7723)
    v6([0x2001, 1, 0, 0, 0, 0, 0, 2], 128), // TURN anycast (RFC 8155)
    v6([0x2001, 1, 0, 0, 0, 0, 0, 3], 128), // DNS-SD registration anycast (RFC 9665)
    v6([0x2001, 3, 0, 0, 0, 0, 0, 0], 32), // AMT (RFC 7450)
    v6([0x2001, 4, 0x112, 0, 0, 0, 0, 0], 48), // AS112-v6 (RFC 7535)
    v6([0x2001, 0x20, 0, 0, 0, 0, 0, 0], 28), // ORCHIDv2 (RFC 7343)
    v6([0x2001, 0x30, 0, 0, 0, 0, 0, 0], 28), // drone remote ID (RFC 9374)
];

const fn v4([a, b, c, d]: [u8; 4], bits: u8) -> IpNet {
    IpNet::new_assert(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits)
}

const fn v6([a, b, c, d, e, f, g, h]: [u16; 8], bits: u8) -> IpNet {
    IpNet::new_assert(IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), bits)
}

/// The class of a flow's destination. Classes keep different paths apart: a path to a neighbour has
/// a thousand round trips a second and no queue, and what a flow learns there does not apply to a
/// path of 50 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// A prefix that `--policy` names.
    Prefix(IpNet),
    /// An address without such a prefix that only hosts of one network can reach.
    Private,
    /// All other addresses.
    Public,
}

impl Class {
    /// The class of an address. `prefix` is the one whose policy the flow has.
    pub fn of(remote: IpAddr, prefix: Option<IpNet>) -> Class {
        match prefix {
            Some(prefix) => Class::Prefix(prefix),
            None if is_private(remote.to_canonical()) => Class::Private,
            None => Class::Public,
        }
    }

    /// The classes of the flows that have the policy of this prefix, or the policy without a
    /// prefix.
    pub fn of_policy(prefix: Option<IpNet>) -> Vec<Class> {
        prefix.map_or_else(
            || vec![Class::Private, Class::Public],
            |prefix| vec![Class::Prefix(prefix)],
        )
    }

    /// The part of a file's name that stands for the class.
    pub fn suffix(self) -> String {
        match self {
            Class::Prefix(prefix) => prefix.to_string().replace('/', "_").replace(':', "-"),
            Class::Private | Class::Public => self.to_string(),
        }
    }
}

fn is_private(address: IpAddr) -> bool {
    let is_in = |nets: &[IpNet]| nets.iter().any(|net| net.contains(&address));
    is_in(&NOT_GLOBAL) && !is_in(&EXCEPTIONS)
}

impl Display for Class {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Class::Prefix(prefix) => prefix.fmt(f),
            Class::Private => f.write_str("private"),
            Class::Public => f.write_str("public"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(remote: &str, prefix: Option<&str>) -> String {
        let prefix = prefix.map(|prefix| prefix.parse().expect("a prefix"));
        Class::of(remote.parse().expect("an address"), prefix).to_string()
    }

    /// Tries the first and the last address of each entry, and their neighbours outside it.
    ///
    /// <https://www.iana.org/assignments/iana-ipv4-special-registry>,
    /// <https://www.iana.org/assignments/iana-ipv6-special-registry>
    #[test]
    fn addresses_that_are_not_globally_reachable_are_private() {
        let table = [
            ("0.0.0.0/8", "private", "", "1.0.0.0"),
            ("10.0.0.0/8", "private", "9.255.255.255", "11.0.0.0"),
            ("100.64.0.0/10", "private", "100.63.255.255", "100.128.0.0"),
            ("127.0.0.0/8", "private", "126.255.255.255", "128.0.0.0"),
            (
                "169.254.0.0/16",
                "private",
                "169.253.255.255",
                "169.255.0.0",
            ),
            ("172.16.0.0/12", "private", "172.15.255.255", "172.32.0.0"),
            ("192.0.0.0/29", "private", "191.255.255.255", ""),
            ("192.0.0.8/32", "private", "", ""),
            ("192.0.0.9/32", "public", "", ""),
            ("192.0.0.10/32", "public", "", ""),
            ("192.0.0.170/31", "private", "", ""),
            ("192.0.0.255/32", "private", "", "192.0.1.0"),
            ("192.0.2.0/24", "private", "192.0.1.255", "192.0.3.0"),
            ("192.31.196.0/24", "public", "", ""),
            ("192.52.193.0/24", "public", "", ""),
            ("192.88.99.2/32", "private", "192.88.99.1", "192.88.99.3"),
            (
                "192.168.0.0/16",
                "private",
                "192.167.255.255",
                "192.169.0.0",
            ),
            ("192.175.48.0/24", "public", "", ""),
            ("198.18.0.0/15", "private", "198.17.255.255", "198.20.0.0"),
            (
                "198.51.100.0/24",
                "private",
                "198.51.99.255",
                "198.51.101.0",
            ),
            ("203.0.113.0/24", "private", "203.0.112.255", "203.0.114.0"),
            ("240.0.0.0/4", "private", "", ""),
            ("255.255.255.255/32", "private", "", ""),
            ("::/128", "private", "", "::2"),
            ("::1/128", "private", "", "::2"),
            ("64:ff9b::/96", "public", "", ""),
            (
                "64:ff9b:1::/48",
                "private",
                "64:ff9b:0:ffff::",
                "64:ff9b:2::",
            ),
            ("100::/64", "private", "ff:ffff::", "100:0:0:2::"),
            ("100:0:0:1::/64", "private", "", "100:0:0:2::"),
            ("2001::/32", "public", "2000:ffff::", ""),
            ("2001:1::1/128", "public", "", ""),
            ("2001:1::2/128", "public", "", ""),
            ("2001:1::3/128", "public", "", ""),
            ("2001:1::4/128", "private", "", ""),
            ("2001:2::/48", "private", "", ""),
            ("2001:3::/32", "public", "", ""),
            ("2001:4:112::/48", "public", "", ""),
            ("2001:4:113::/48", "private", "", ""),
            ("2001:20::/28", "public", "", ""),
            ("2001:30::/28", "public", "", ""),
            ("2001:1ff:ffff::/48", "private", "", "2001:200::"),
            ("2001:db8::/32", "private", "2001:db7:ffff::", "2001:db9::"),
            ("2002::/16", "public", "", ""),
            ("2620:4f:8000::/48", "public", "", ""),
            ("3fff::/20", "private", "3ffe:ffff::", "3fff:1000::"),
            ("5f00::/16", "private", "5eff:ffff::", "5f01::"),
            ("fc00::/7", "private", "fbff:ffff::", "fe00::"),
            ("fe80::/10", "private", "fe7f:ffff::", ""),
            // These addresses are not in the registries.
            ("1.1.1.1/32", "public", "", ""),
            ("2606:4700::/32", "public", "", ""),
        ];
        for (entry, wanted, before, after) in table {
            let net: IpNet = entry.parse().expect(entry);
            for address in [net.network(), net.broadcast()] {
                assert_eq!(class(&address.to_string(), None), wanted, "{address}");
                // An IPv6 socket shows an IPv4 peer in ::ffff:0:0/96.
                if let IpAddr::V4(v4) = address {
                    let mapped = v4.to_ipv6_mapped().to_string();
                    assert_eq!(class(&mapped, None), wanted, "{mapped}");
                }
            }
            for outside in [before, after].into_iter().filter(|text| !text.is_empty()) {
                assert_eq!(class(outside, None), "public", "{outside}");
            }
        }
    }

    #[test]
    fn each_prefix_of_a_policy_is_a_class() {
        assert_eq!(class("10.1.2.3", Some("10.0.0.0/8")), "10.0.0.0/8");
        assert_eq!(class("2001:db8::1", Some("2001:db8::/32")), "2001:db8::/32");
        let suffix = |prefix: &str| Class::Prefix(prefix.parse().expect("a prefix")).suffix();
        assert_eq!(suffix("10.0.0.0/8"), "10.0.0.0_8");
        assert_eq!(suffix("2001:db8::/32"), "2001-db8--_32");
    }
}
