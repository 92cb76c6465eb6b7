//! The paths of a network, by the addresses of their senders and receivers.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use ipnet::IpNet;

use super::Path;

/// Paths that are found by the two ends of a flow. However many there are, a search takes one step
/// for each pair of prefix lengths that occurs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathTable {
    /// The paths by receivers and senders.
    paths: HashMap<(IpNet, IpNet), Path>,
    /// The lengths of both prefixes. The longest receiver's prefix comes first, and then the
    /// longest sender's.
    lengths: BTreeSet<Reverse<(u8, u8)>>,
}

impl FromIterator<Path> for PathTable {
    /// Of two paths with the same ends the later one counts.
    fn from_iter<T: IntoIterator<Item = Path>>(paths: T) -> PathTable {
        let mut table = PathTable::default();
        for path in paths {
            let (to, from) = (path.to.trunc(), path.from.trunc());
            let lengths = (to.prefix_len(), from.prefix_len());
            table.lengths.insert(Reverse(lengths));
            table.paths.insert((to, from), path);
        }
        table
    }
}

impl PathTable {
    /// The number of paths.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// The path from one address to another. If several match, the longest receiver's prefix
    /// decides, and then the longest sender's prefix.
    pub fn of(&self, local: IpAddr, remote: IpAddr) -> Option<&Path> {
        let of_length = |address, length| Some(IpNet::new(address, length).ok()?.trunc());
        self.lengths.iter().find_map(|Reverse((to, from))| {
            let ends = (of_length(remote, *to)?, of_length(local, *from)?);
            self.paths.get(&ends)
        })
    }
}

#[cfg(test)]
mod tests {
    use headway_cc::NetworkView;

    use super::*;

    fn path(name: &str, from: &str, to: &str) -> Path {
        Path {
            name: name.to_owned(),
            from: from.parse().expect("a prefix"),
            to: to.parse().expect("a prefix"),
            view: NetworkView::default(),
        }
    }

    #[test]
    fn a_flow_takes_the_path_with_the_longest_prefixes() {
        let paths = PathTable::from_iter([
            path("all", "0.0.0.0/0", "0.0.0.0/0"),
            path("to", "10.0.0.0/8", "10.1.0.0/16"),
            path("both", "10.0.0.0/24", "10.1.0.0/16"),
            path("other", "10.0.1.0/24", "10.1.0.1/32"),
            // A host's address may stand for its network.
            path("six", "fd00::1/64", "fd01::1/48"),
        ]);
        let of = |from: &str, to: &str| {
            let [from, to] = [from, to].map(|text| text.parse().expect("an address"));
            paths.of(from, to).map(|path| path.name.as_str())
        };
        assert_eq!(paths.len(), 5);
        assert_eq!(of("10.0.0.1", "10.1.0.1"), Some("both"));
        assert_eq!(of("10.0.2.1", "10.1.0.1"), Some("to"));
        assert_eq!(of("10.0.1.1", "10.1.0.1"), Some("other"));
        assert_eq!(of("192.0.2.1", "10.1.0.1"), Some("all"));
        assert_eq!(of("fd00::2", "fd01:0:0:2::3"), Some("six"));
        assert_eq!(of("fd00:0:0:1::2", "fd01::3"), None);
        assert_eq!(of("::1", "::1"), None);
    }
}
