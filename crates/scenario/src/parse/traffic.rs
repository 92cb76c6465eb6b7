//! Reads the traffic over the graph: `[[flow]]`, `[[cross]]`.

use std::collections::BTreeMap;

use super::links::{Graph, routes};
use crate::ScenarioError;
use crate::error::quoted;
use crate::plan::{CrossPlan, FlowPlan, PatternPlan, PresencePlan, RatePlan, SourcePlan};
use crate::quantity::{
    GAP, PACKET_SIZE, PACKETS, PERIOD, Quantity, RATE, SIZE, TIME, split_unit, without_log,
};
use crate::reader::{Item, Table};
use crate::route::Routes;

const MAX_FLOWS: u64 = 100_000;
const MAX_CROSS: usize = 10_000;

#[derive(Debug)]
pub(super) struct Traffic {
    pub flows: Vec<FlowPlan>,
    pub cross: Vec<CrossPlan>,
}

/// Everything that entries are checked against.
struct Reader<'g, 'a> {
    graph: &'g Graph<'a>,
    routes: Routes,
    /// Pairs of nodes already looked up: whether there is a way.
    reachable: BTreeMap<(usize, usize), bool>,
    /// Pairs of nodes already looked up: whether a link on the way has a rate.
    limited: BTreeMap<(usize, usize), bool>,
    end: f64,
    packet_size: f64,
}

pub(super) fn read(
    root: &Table<'_>,
    graph: &Graph<'_>,
    seconds: f64,
    packet_size: f64,
) -> Result<Traffic, ScenarioError> {
    let mut reader = Reader {
        graph,
        routes: routes(&graph.nodes, &graph.links),
        reachable: BTreeMap::new(),
        limited: BTreeMap::new(),
        end: seconds * 1e9,
        packet_size,
    };
    Ok(Traffic {
        flows: reader.flows(root)?,
        cross: reader.cross(root)?,
    })
}

impl Reader<'_, '_> {
    fn flows(&mut self, root: &Table<'_>) -> Result<Vec<FlowPlan>, ScenarioError> {
        const KEYS: &[&str] = &[
            "count",
            "scheme",
            "from",
            "to",
            "route",
            "start",
            "stop",
            "stagger",
            "present",
            "absent",
            "bytes",
            "rate",
            "on",
            "off",
            "receive_window",
        ];
        let tables = root.list("flow", KEYS)?;
        if tables.is_empty() {
            return match self.graph.short_form {
                true => Ok(vec![bulk_flow()]),
                false => Err(root
                    .place
                    .error("there is no flow; write [[flow]] with from and to")),
            };
        }
        let mut flows = Vec::new();
        let mut total = 0;
        for (i, table) in tables.iter().enumerate() {
            let flow = self.flow(table, &format!("flow.{i}"))?;
            total += flow.count;
            if total > MAX_FLOWS {
                return Err(table.place.error(format!(
                    "this makes {total} flows; write at most {MAX_FLOWS}"
                )));
            }
            flows.push(flow);
        }
        if flows.iter().all(|f| f.scheme.is_some()) {
            return Err(tables[0].place.error(
                "every flow has a scheme of its own; leave it out where the scheme under test runs",
            ));
        }
        Ok(flows)
    }

    fn flow(&mut self, table: &Table<'_>, component: &str) -> Result<FlowPlan, ScenarioError> {
        let (from, to, route) = self.way(table)?;
        match &route {
            None => self.check_way(table, to, from)?,
            Some((item, nodes)) => {
                let back: Vec<usize> = nodes.iter().rev().copied().collect();
                self.check_route(item, &back)?;
            }
        }
        let route = route.map(|(_, nodes)| nodes);
        self.check_rate(table, from, to, route.as_deref())?;
        let count = table
            .get("count")
            .map_or(Ok(1), |item| item.whole(1, MAX_FLOWS))?;
        let stagger = table
            .quantity("stagger", &TIME, component)?
            .unwrap_or(Quantity::fixed(0.0));
        let last = stagger.high * (count - 1) as f64;
        let (start, stop) = self.times(table, component, last)?;
        let scheme = match table.get("scheme") {
            None => None,
            Some(item) => match item.line()? {
                "" => {
                    return Err(item
                        .place
                        .error("a scheme's name is missing; write for example \"cubic\""));
                }
                // A scenario is data: opening one from elsewhere must not run code of its author.
                scheme if scheme.split(':').next() == Some("python") => {
                    return Err(item.place.error(
                        "a scenario cannot name a Python class; give it as --schemes python:FILE",
                    ));
                }
                scheme => Some(scheme.to_owned()),
            },
        };
        let presence = match (
            table.quantity("present", &GAP, component)?,
            table.quantity("absent", &GAP, component)?,
        ) {
            (Some(present), Some(absent)) => Some(PresencePlan { present, absent }),
            (None, None) => None,
            _ => {
                return Err(table.place.error(
                    "present and absent go together; write both, such as present = \"1s..50s\" and absent = \"1s..50s\"",
                ));
            }
        };
        let bytes = self.size(table, "bytes", component)?;
        let rate = table.quantity("rate", &RATE, component)?;
        let source = match (bytes, rate, on_off(table, component)?) {
            (None, None, None) => SourcePlan::Bulk,
            (Some(bytes), None, None) => SourcePlan::Finite(bytes),
            (None, Some(rate), None) => SourcePlan::Rate(rate),
            (None, None, Some((on, off))) => SourcePlan::OnOff { on, off },
            _ => {
                return Err(table
                    .place
                    .error("a flow has bytes, or a rate, or on and off; remove the others"));
            }
        };
        Ok(FlowPlan {
            count,
            scheme,
            from,
            to,
            start,
            stop,
            stagger,
            source,
            receive_window: self.receive_window(table, component)?,
            presence,
            route,
        })
    }

    /// Reads a number of bytes, or of full packets.
    fn size(
        &self,
        table: &Table<'_>,
        key: &'static str,
        component: &str,
    ) -> Result<Option<Quantity>, ScenarioError> {
        let Some(item) = table.get(key) else {
            return Ok(None);
        };
        let component = format!("{component}.{key}");
        let text = item.text("a size such as \"10MB\"")?;
        if split_unit(without_log(text)).1 != "pkt" {
            return item.quantity(&SIZE, &component).map(Some);
        }
        let packets = item.quantity(&PACKETS, &component)?;
        Ok(Some(Quantity {
            low: packets.low * self.packet_size,
            high: packets.high * self.packet_size,
            ..packets
        }))
    }

    fn receive_window(
        &self,
        table: &Table<'_>,
        component: &str,
    ) -> Result<Option<Quantity>, ScenarioError> {
        let window = self.size(table, "receive_window", component)?;
        match (&window, table.get("receive_window")) {
            (Some(window), Some(item)) if window.low < self.packet_size => {
                Err(item.place.error(format!(
                    "a receive window smaller than a packet lets none through; \
                     write at least \"{}B\" or \"1pkt\"",
                    self.packet_size
                )))
            }
            _ => Ok(window),
        }
    }

    fn cross(&mut self, root: &Table<'_>) -> Result<Vec<CrossPlan>, ScenarioError> {
        const KEYS: &[&str] = &[
            "from",
            "to",
            "route",
            "start",
            "stop",
            "rate",
            "packet_size",
            "pattern",
            "on",
            "off",
        ];
        let tables = root.list("cross", KEYS)?;
        if let Some(table) = tables.get(MAX_CROSS) {
            return Err(table.place.error(format!(
                "too much cross traffic; write at most {MAX_CROSS} entries"
            )));
        }
        let mut all = Vec::new();
        for (i, table) in tables.iter().enumerate() {
            let component = format!("cross.{i}");
            let (from, to, route) = self.way(table)?;
            let (start, stop) = self.times(table, &component, 0.0)?;
            let rate = table
                .require("rate", "\"1Mbps\"")?
                .quantity(&RATE, &format!("{component}.rate"))?;
            let packet_size = table.quantity("packet_size", &PACKET_SIZE, &component)?;
            let packet_size = packet_size.unwrap_or(Quantity::fixed(self.packet_size));
            let pattern = match table.get("pattern") {
                None => "constant",
                Some(item) => item.word(&["constant", "poisson", "onoff"].map(|w| (w, w)))?,
            };
            let pattern = match (pattern, on_off(table, &component)?) {
                ("onoff", Some((on, off))) => PatternPlan::OnOff { on, off },
                ("onoff", None) => {
                    return Err(table
                        .place
                        .error("pattern = \"onoff\" needs on and off, such as on = \"1s\""));
                }
                (_, Some(_)) => {
                    return Err(table
                        .place
                        .error("on and off go with pattern = \"onoff\"; write it or remove them"));
                }
                ("poisson", None) => PatternPlan::Poisson,
                _ => PatternPlan::Constant,
            };
            all.push(CrossPlan {
                from,
                to,
                start,
                stop,
                rate,
                packet_size,
                pattern,
                route: route.map(|(_, nodes)| nodes),
            });
        }
        Ok(all)
    }

    /// The ends of traffic, which are connected, and the nodes that it passes, if the file names
    /// them.
    fn way<'a>(&mut self, table: &Table<'a>) -> Result<Way<'a>, ScenarioError> {
        if let Some(item) = table.get("route") {
            if let Some(end) = table.get("from").or(table.get("to")) {
                return Err(end
                    .place
                    .error("the route says where it runs; remove this or the route"));
            }
            let nodes = self.route(&item)?;
            return Ok((nodes[0], nodes[nodes.len() - 1], Some((item, nodes))));
        }
        let end = |key, default| match (table.get(key), self.graph.short_form) {
            (None, true) => Ok(default),
            _ => self
                .graph
                .node(&table.require(key, &format!("\"{}\"", self.graph.nodes[default]))?),
        };
        let (from, to) = (end("from", 0)?, end("to", 1)?);
        if from == to {
            return Err(table.place.error(format!(
                "it runs from {0} to {0}; write two nodes",
                quoted(&self.graph.nodes[from])
            )));
        }
        self.check_way(table, from, to)?;
        Ok((from, to, None))
    }

    /// Reads at least two nodes, each once, connected in this order.
    fn route(&self, item: &Item<'_>) -> Result<Vec<usize>, ScenarioError> {
        let mut nodes = Vec::new();
        for entry in item.entries("a list of nodes such as [\"a\", \"b\"]")? {
            let node = self.graph.node(&entry)?;
            if nodes.contains(&node) {
                return Err(entry.place.error(format!(
                    "it passes {} twice; write each node once",
                    quoted(&self.graph.nodes[node])
                )));
            }
            nodes.push(node);
        }
        if nodes.len() < 2 {
            return Err(item
                .place
                .error("a route has two ends; write the nodes from first to last"));
        }
        self.check_route(item, &nodes)?;
        Ok(nodes)
    }

    fn check_route(&self, item: &Item<'_>, nodes: &[usize]) -> Result<(), ScenarioError> {
        let gap = |pair: &&[usize]| self.routes.through(pair).is_none();
        match nodes.windows(2).find(gap) {
            None => Ok(()),
            Some(pair) => Err(item.place.error(format!(
                "no link leads from {} to {}; add one, or write duplex = true",
                quoted(&self.graph.nodes[pair[0]]),
                quoted(&self.graph.nodes[pair[1]])
            ))),
        }
    }

    fn check_way(
        &mut self,
        table: &Table<'_>,
        from: usize,
        to: usize,
    ) -> Result<(), ScenarioError> {
        let routes = &self.routes;
        match self
            .reachable
            .entry((from, to))
            .or_insert_with(|| routes.between(from, to).is_some())
        {
            true => Ok(()),
            false => {
                let [from, to] = [from, to].map(|n| quoted(&self.graph.nodes[n]));
                Err(table.place.error(format!(
                    "no links lead from {from} to {to}; add one, or write duplex = true"
                )))
            }
        }
    }

    /// Checks that a link limits the flow: otherwise its window would grow for ever.
    fn check_rate(
        &mut self,
        table: &Table<'_>,
        from: usize,
        to: usize,
        route: Option<&[usize]>,
    ) -> Result<(), ScenarioError> {
        let (graph, routes) = (self.graph, &self.routes);
        let has_rate = |&link: &usize| !matches!(graph.links[link].rate, RatePlan::Unlimited);
        let any = |way: Option<Vec<usize>>| way.unwrap_or_default().iter().any(has_rate);
        let limited = match route {
            Some(nodes) => any(routes.through(nodes)),
            None => *self
                .limited
                .entry((from, to))
                .or_insert_with(|| any(routes.between(from, to))),
        };
        if limited {
            return Ok(());
        }
        let (from, to) = (quoted(&graph.nodes[from]), quoted(&graph.nodes[to]));
        Err(table.place.error(format!(
            "no link from {from} to {to} limits it; give one a rate such as \"12Mbps\", or a trace"
        )))
    }

    /// Reads when traffic starts and stops; the last of several starts `last` ns after the first.
    fn times(
        &self,
        table: &Table<'_>,
        component: &str,
        last: f64,
    ) -> Result<(Quantity, Option<Quantity>), ScenarioError> {
        let start = table
            .quantity("start", &TIME, component)?
            .unwrap_or(Quantity::fixed(0.0));
        let stop = table.quantity("stop", &TIME, component)?;
        if start.low >= self.end {
            return Err(table.place.error(format!(
                "it starts after the run's end; write a start before {}s",
                self.end / 1e9
            )));
        }
        if start.high + last > TIME_LIMIT {
            return Err(table
                .place
                .error("the last of these flows starts after 1000000s; write a shorter stagger"));
        }
        match &stop {
            Some(stop) if stop.low <= start.high + last => Err(table.place.error(format!(
                "it may stop at {}s, which is not after its latest start at {}s; write a later stop",
                stop.low / 1e9,
                (start.high + last) / 1e9
            ))),
            _ => Ok((start, stop)),
        }
    }
}

/// The latest start of a flow, in ns.
const TIME_LIMIT: f64 = 1e15;

/// The ends of traffic; and, if the file names them, the nodes on its way, with their place in the
/// file.
type Way<'a> = (usize, usize, Option<(Item<'a>, Vec<usize>)>);

fn bulk_flow() -> FlowPlan {
    FlowPlan {
        count: 1,
        scheme: None,
        from: 0,
        to: 1,
        start: Quantity::fixed(0.0),
        stop: None,
        stagger: Quantity::fixed(0.0),
        source: SourcePlan::Bulk,
        receive_window: None,
        presence: None,
        route: None,
    }
}

fn on_off(
    table: &Table<'_>,
    component: &str,
) -> Result<Option<(Quantity, Quantity)>, ScenarioError> {
    match (
        table.quantity("on", &PERIOD, component)?,
        table.quantity("off", &PERIOD, component)?,
    ) {
        (Some(on), Some(off)) => Ok(Some((on, off))),
        (None, None) => Ok(None),
        _ => Err(table
            .place
            .error("on and off go together; write both, such as on = \"1s\" and off = \"2s\"")),
    }
}
