//! Finds routes: through the nodes that a flow names, or else the fewest links; among equal routes,
//! the one whose links come first in the file.

use std::collections::VecDeque;

use crate::Network;

/// The outgoing links of each node.
#[derive(Clone, Debug)]
pub struct Routes {
    /// For each node its links as (link, node at the other end), in the order of the file.
    out: Vec<Vec<(usize, usize)>>,
    /// The node at the end of each link.
    ends: Vec<usize>,
}

impl Routes {
    /// Routes over `nodes` nodes, with directed links as (from, to).
    pub fn new(nodes: usize, links: impl IntoIterator<Item = (usize, usize)>) -> Routes {
        let mut out = vec![Vec::new(); nodes];
        let mut ends = Vec::new();
        for (link, (from, to)) in links.into_iter().enumerate() {
            out[from].push((link, to));
            ends.push(to);
        }
        Routes { out, ends }
    }

    /// The links from one node to another, or `None` if there is no way.
    pub fn between(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        // It searches breadth first, so a node is first reached over the fewest links.
        let mut reached_by: Vec<Option<(usize, usize)>> = vec![None; self.out.len()];
        let mut frontier = VecDeque::from([from]);
        while let Some(node) = frontier.pop_front() {
            if node == to {
                let mut route = Vec::new();
                let mut node = to;
                while node != from {
                    let (link, before) = reached_by[node]?;
                    route.push(link);
                    node = before;
                }
                route.reverse();
                return Some(route);
            }
            for &(link, next) in &self.out[node] {
                if next != from && reached_by[next].is_none() {
                    reached_by[next] = Some((link, node));
                    frontier.push_back(next);
                }
            }
        }
        None
    }

    /// The links that data crosses: through the nodes that it names, or else the fewest. `None` if
    /// there is no way.
    pub fn there(&self, from: usize, to: usize, nodes: Option<&[usize]>) -> Option<Vec<usize>> {
        match nodes {
            Some(nodes) => self.through(nodes),
            None => self.between(from, to),
        }
    }

    /// The links that acknowledgements of that data cross: back through the same nodes if it names
    /// them.
    pub fn back(&self, from: usize, to: usize, nodes: Option<&[usize]>) -> Option<Vec<usize>> {
        let reversed = nodes.map(|nodes| nodes.iter().rev().copied().collect::<Vec<_>>());
        self.there(to, from, reversed.as_deref())
    }

    /// The links that data crosses, followed by those of its acknowledgements; empty if there is no
    /// way.
    pub fn round_trip(&self, from: usize, to: usize, nodes: Option<&[usize]>) -> Vec<usize> {
        let ways = [self.there(from, to, nodes), self.back(from, to, nodes)];
        ways.into_iter().flatten().flatten().collect()
    }

    /// The switches that data crosses: the nodes between its ends, in order.
    pub fn switches(&self, from: usize, to: usize, nodes: Option<&[usize]>) -> Vec<usize> {
        let way = self.there(from, to, nodes).unwrap_or_default();
        let before_last = way.len().saturating_sub(1);
        way[..before_last].iter().map(|&l| self.ends[l]).collect()
    }

    /// The links through these nodes in order, or `None` if two neighbours have no link.
    pub fn through(&self, nodes: &[usize]) -> Option<Vec<usize>> {
        let link = |pair: &[usize]| {
            let out = self.out[pair[0]].iter();
            out.copied().find(|&(_, to)| to == pair[1]).map(|(l, _)| l)
        };
        nodes.windows(2).map(link).collect()
    }
}

impl Network {
    /// Routes over this network's links.
    pub fn routes(&self) -> Routes {
        Routes::new(self.nodes.len(), self.links.iter().map(|l| (l.from, l.to)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_route_wins_then_file_order() {
        // 0 -> 1 -> 3, 0 -> 2 -> 3, and 3 -> 0 the long way round.
        let routes = Routes::new(6, [(0, 1), (0, 2), (2, 3), (1, 3), (3, 4), (4, 0), (0, 1)]);
        assert_eq!(routes.between(0, 3), Some(vec![0, 3]));
        assert_eq!(routes.between(3, 1), Some(vec![4, 5, 0]));
        assert_eq!(routes.between(2, 2), Some(vec![]));
        assert_eq!(routes.between(0, 5), None);
        assert_eq!(routes.between(5, 0), None);
        assert_eq!(routes.through(&[3, 4, 0, 1]), Some(vec![4, 5, 0]));
        assert_eq!(routes.through(&[0, 2, 3]), Some(vec![1, 2]));
        assert_eq!(routes.through(&[0, 3]), None);
        assert_eq!(routes.switches(3, 1, None), [4, 0]);
        assert_eq!(routes.switches(0, 3, Some(&[0, 2, 3])), [2]);
        assert_eq!(routes.switches(0, 1, None), Vec::<usize>::new());
    }
}
