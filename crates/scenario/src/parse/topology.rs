//! Reads `[topology]`: a graph of switches, each with a host, in one table.

use super::links::{self, Graph, link, routes};
use super::traffic::Traffic;
use crate::ScenarioError;
use crate::plan::{CrossPlan, PatternPlan, RatePlan};
use crate::quantity::{Quantity, RATE};
use crate::reader::{Place, Table};

/// The most switches: a packet counts the links of its route in a byte.
const MAX_SWITCHES: u64 = 200;

/// NSFNET's 14 nodes and 21 links of 1991, as networking research uses them. The edge list is that
/// of `lasseufpa/robust-ndt` (`nsfnet_14.gml`, after the RouteNet data sets' `nsfnetbw`). Except
/// for the numbers of the nodes, it is also that of `TheMatheusLs/simulador_rl` (`NSFNet.py`).
const NSFNET: [(usize, usize); 21] = [
    (0, 1),
    (0, 2),
    (0, 3),
    (1, 2),
    (1, 7),
    (2, 5),
    (3, 4),
    (3, 8),
    (4, 5),
    (4, 6),
    (5, 12),
    (5, 13),
    (6, 7),
    (7, 10),
    (8, 9),
    (8, 11),
    (9, 10),
    (9, 12),
    (10, 11),
    (10, 13),
    (11, 12),
];

/// The parts of the table that the rest of the file needs.
#[derive(Debug)]
pub(super) struct Topology<'a> {
    place: Place<'a>,
    /// The number of its links between switches, which are the graph's first, in both directions.
    links: usize,
    /// The host at each switch, by node.
    hosts: Vec<usize>,
    /// The share of each link on the way of a flow under test that background traffic uses.
    load: Option<f64>,
}

#[derive(Clone, Copy)]
enum Kind {
    Chain,
    Nsfnet,
}

/// Adds the table's nodes and links to an empty graph, if there is such a table.
pub(super) fn add<'a>(
    root: &Table<'a>,
    graph: &mut Graph<'a>,
) -> Result<Option<Topology<'a>>, ScenarioError> {
    let Some(item) = root.get("topology") else {
        return Ok(None);
    };
    let keys = [links::LINK_KEYS, &["kind", "switches", "host_rate", "load"]].concat();
    let table = item.table(&keys)?;
    let kind = table
        .require("kind", "\"nsfnet\"")?
        .word(&[("chain", Kind::Chain), ("nsfnet", Kind::Nsfnet)])?;
    let (names, edges): (Vec<String>, Vec<(usize, usize)>) = match (kind, table.get("switches")) {
        (Kind::Chain, _) => {
            let item = table.require("switches", "7")?;
            let count = item.whole(2, MAX_SWITCHES)? as usize;
            let names = (1..=count).map(|n| n.to_string()).collect();
            (names, (1..count).map(|n| (n - 1, n)).collect())
        }
        (Kind::Nsfnet, Some(item)) => {
            return Err(item.place.error("NSFNET has 14; remove this"));
        }
        (Kind::Nsfnet, None) => ((0..14).map(|n| n.to_string()).collect(), NSFNET.to_vec()),
    };
    let ends = match kind {
        Kind::Chain => Some([0, names.len() - 1]),
        Kind::Nsfnet => None,
    };
    let host = |at: usize| match ends {
        Some([first, _]) if at == first => "sender".to_owned(),
        Some([_, last]) if at == last => "receiver".to_owned(),
        _ => format!("h{}", names[at]),
    };
    let count = names.len();
    graph.nodes = names.iter().map(|n| format!("s{n}")).collect();
    graph.nodes.extend((0..count).map(host));
    for &(a, b) in &edges {
        let name = format!("s{}-s{}", names[a], names[b]);
        graph.add_duplex(link(&table, &name, a, b)?, &table.place)?;
    }
    let host_rate = table.quantity("host_rate", &RATE, "topology")?;
    for at in 0..count {
        let name = format!("{}-{}", graph.nodes[count + at], graph.nodes[at]);
        let mut wire = links::unlimited(&name, count + at, at);
        if let Some(rate) = &host_rate {
            wire.rate = RatePlan::Fixed(rate.clone());
        }
        graph.add_duplex(wire, &table.place)?;
    }
    Ok(Some(Topology {
        links: 2 * edges.len(),
        hosts: (count..2 * count).collect(),
        load: load(&table)?,
        place: table.place,
    }))
}

fn load(table: &Table<'_>) -> Result<Option<f64>, ScenarioError> {
    let Some(item) = table.get("load") else {
        return Ok(None);
    };
    let share = item.probability("topology.load")?;
    match table.has("rate") && !share.varies() {
        true => Ok((share.low > 0.0).then_some(share.low)),
        false => Err(item
            .place
            .error("a load is one share of the links' rate; write load = \"40%\" and a rate")),
    }
}

impl Topology<'_> {
    /// Adds the background traffic: UDP over each link between switches that carries data of the
    /// flows under test, from the host at one end to the host at the other, so that no two links
    /// share it.
    pub fn add_load(
        &self,
        graph: &Graph<'_>,
        traffic: &mut Traffic,
        packet_size: f64,
    ) -> Result<(), ScenarioError> {
        let Some(load) = self.load else {
            return Ok(());
        };
        let routes = routes(&graph.nodes, &graph.links);
        let under_test = traffic.flows.iter().filter(|f| f.scheme.is_none());
        let mut links: Vec<usize> = under_test
            .filter_map(|f| routes.there(f.from, f.to, f.route.as_deref()))
            .flatten()
            .filter(|&l| l < self.links)
            .collect();
        links.sort_unstable();
        links.dedup();
        if links.is_empty() {
            return Err(self
                .place
                .error("no flow under test crosses a link between switches, so none has a load"));
        }
        traffic.cross.extend(links.into_iter().filter_map(|l| {
            let link = &graph.links[l];
            let RatePlan::Fixed(rate) = &link.rate else {
                return None;
            };
            Some(CrossPlan {
                from: self.hosts[link.from],
                to: self.hosts[link.to],
                start: Quantity::fixed(0.0),
                stop: None,
                // The rate has the link's own name, so that both draw the same value.
                rate: Quantity {
                    low: (rate.low * load).round().max(1.0),
                    high: (rate.high * load).round().max(1.0),
                    log: rate.log,
                    component: rate.component.clone(),
                },
                packet_size: Quantity::fixed(packet_size),
                pattern: PatternPlan::Poisson,
                route: None,
            })
        }));
        Ok(())
    }
}
