//! Classes of destinations: what a learner learns is handed on within one.

use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;

use ipnet::IpNet;

/// The class of a flow's destination. A flow goes on from what flows to the same class have learned: to a neighbour there
/// are a thousand round trips a second and no queue, and what is learned there says nothing of a path with 50 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// A prefix that `--policy` names.
    Prefix(IpNet),
    /// Without such a prefix: an address that is not routed in the Internet (RFC 1918, 3927, 4193, loopback).
    Private,
    /// All others.
    Public,
}

impl Class {
    /// Of an address, and the prefix whose policy the flow has.
    pub fn of(remote: IpAddr, prefix: Option<IpNet>) -> Class {
        let is_private = match remote.to_canonical() {
            IpAddr::V4(v4) => v4.is_private() || v4.is_loopback() || v4.is_link_local(),
            IpAddr::V6(v6) => {
                v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local()
            }
        };
        match (prefix, is_private) {
            (Some(prefix), _) => Class::Prefix(prefix),
            (None, true) => Class::Private,
            (None, false) => Class::Public,
        }
    }

    /// What it adds to a file's name; nothing for [`Class::Public`].
    pub fn suffix(self) -> String {
        match self {
            Class::Prefix(prefix) => format!("-{prefix}").replace('/', "_").replace(':', "-"),
            Class::Private => "-private".to_owned(),
            Class::Public => String::new(),
        }
    }
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

    #[test]
    fn addresses_of_the_internet_are_public() {
        for remote in [
            "192.0.2.1",
            "100.64.0.1",
            "172.32.0.1",
            "11.0.0.1",
            "2001:db8::1",
        ] {
            assert_eq!(class(remote, None), "public", "{remote}");
        }
        for remote in [
            "10.1.2.3",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.1.1",
            "127.0.0.1",
            "::1",
            "fd00::1",
            "fe80::1",
            "::ffff:10.1.2.3",
        ] {
            assert_eq!(class(remote, None), "private", "{remote}");
        }
    }

    #[test]
    fn a_prefix_of_the_policies_is_a_class_of_its_own() {
        assert_eq!(class("10.1.2.3", Some("10.0.0.0/8")), "10.0.0.0/8");
        assert_eq!(class("2001:db8::1", Some("2001:db8::/32")), "2001:db8::/32");
        let suffix = |prefix: &str| Class::Prefix(prefix.parse().expect("a prefix")).suffix();
        assert_eq!(suffix("10.0.0.0/8"), "-10.0.0.0_8");
        assert_eq!(suffix("2001:db8::/32"), "-2001-db8--_32");
    }
}
