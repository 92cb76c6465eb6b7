//! Reads the graph: `[bottleneck]` with `[return]`, or any number of `[[link]]`.

use super::topology::{self, Topology};
use super::{impairment, queue};
use crate::error::quoted;
use crate::impairment::LossPlan;
use crate::plan::{LinkPlan, RatePlan, TracePlan};
use crate::quantity::{DELAY, Quantity, RATE};
use crate::queue::QueuePlan;
use crate::reader::{Item, Place, Table};
use crate::route::Routes;
use crate::{Part, ScenarioError};
use headway_cc::suggest;

const MAX_LINKS: usize = 10_000;
/// The keys of every kind of link.
pub(super) const LINK_KEYS: &[&str] = &[
    "rate", "trace", "mean", "once", "part", "delay", "loss", "jitter", "reorder", "queue",
    "router",
];
/// The two nodes of the short form.
const SENDER: &str = "sender";
const RECEIVER: &str = "receiver";

/// The nodes and links of a scenario.
#[derive(Debug)]
pub(super) struct Graph<'a> {
    pub nodes: Vec<String>,
    pub links: Vec<LinkPlan>,
    /// The place of each link in the file.
    pub places: Vec<Place<'a>>,
    /// Whether flows may leave out their ends.
    pub short_form: bool,
    /// The link that always has the first link's delay.
    pub mirror: Option<usize>,
    /// The additions of `[topology]`.
    pub topology: Option<Topology<'a>>,
}

pub(super) fn routes(nodes: &[String], links: &[LinkPlan]) -> Routes {
    Routes::new(nodes.len(), links.iter().map(|l| (l.from, l.to)))
}

pub(super) fn read<'a>(root: &Table<'a>) -> Result<Graph<'a>, ScenarioError> {
    let many = root.get("link").or(root.get("topology"));
    match (root.get("bottleneck"), root.get("return"), many) {
        (Some(_), _, Some(many)) | (_, Some(_), Some(many)) => Err(many.place.error(
            "[[link]] and [topology] do not go with [bottleneck] and [return]; write all links as [[link]]",
        )),
        (None, _, Some(_)) => general_form(root),
        (Some(bottleneck), back, None) => short_form(&bottleneck, back.as_ref()),
        (None, _, None) => Err(root
            .place
            .error("there is no link; write [bottleneck] with a rate or a trace, or [[link]]")),
    }
}

/// Reads a link there and a link back.
fn short_form<'a>(
    bottleneck: &Item<'a>,
    back: Option<&Item<'a>>,
) -> Result<Graph<'a>, ScenarioError> {
    let table = bottleneck.table(LINK_KEYS)?;
    let there = link(&table, "bottleneck", 0, 1)?;
    if let RatePlan::Unlimited = there.rate {
        return Err(table
            .place
            .error("a rate or a trace is missing; write for example rate = \"12Mbps\""));
    }
    let mut places = vec![table.place.clone()];
    let mut mirrors = true;
    let mut back = match back {
        Some(item) => {
            let table = item.table(LINK_KEYS)?;
            let mut back = link(&table, "return", 1, 0)?;
            mirrors = !table.has("delay");
            if mirrors {
                back.delay = there.delay.clone();
            }
            places.push(table.place);
            back
        }
        None => {
            places.push(table.place);
            LinkPlan {
                delay: there.delay.clone(),
                ..unlimited("return", 1, 0)
            }
        }
    };
    back.name = "return".to_owned();
    Ok(Graph {
        nodes: vec![SENDER.to_owned(), RECEIVER.to_owned()],
        links: vec![there, back],
        places,
        short_form: true,
        mirror: mirrors.then_some(1),
        topology: None,
    })
}

fn general_form<'a>(root: &Table<'a>) -> Result<Graph<'a>, ScenarioError> {
    let keys = [LINK_KEYS, &["name", "from", "to", "duplex"]].concat();
    let tables = root.list("link", &keys)?;
    let mut graph = Graph {
        nodes: Vec::new(),
        links: Vec::new(),
        places: Vec::new(),
        short_form: false,
        mirror: None,
        topology: None,
    };
    graph.topology = topology::add(root, &mut graph)?;
    if (tables.is_empty() && graph.topology.is_none()) || tables.len() > MAX_LINKS {
        return Err(root.place.error(format!(
            "{} links; write from 1 to {MAX_LINKS}",
            tables.len()
        )));
    }
    for table in &tables {
        let ends = ["from", "to"].map(|key| {
            let name = table.require(key, "\"a\"")?.name("-_.")?;
            Ok(graph
                .nodes
                .iter()
                .position(|n| n == name)
                .unwrap_or_else(|| {
                    graph.nodes.push(name.to_owned());
                    graph.nodes.len() - 1
                }))
        });
        let [from, to] = ends;
        let (from, to) = (from?, to?);
        if from == to {
            return Err(table.place.error(format!(
                "it leads from {0} to {0}; connect two nodes",
                quoted(&graph.nodes[from])
            )));
        }
        let name = match table.get("name") {
            Some(item) => item.name("-_.")?.to_owned(),
            None => format!("{}-{}", graph.nodes[from], graph.nodes[to]),
        };
        let there = link(table, &name, from, to)?;
        let duplex = table
            .get("duplex")
            .map_or(Ok(false), |item| item.boolean())?;
        match duplex {
            true => graph.add_duplex(there, &table.place)?,
            false => graph.add(there, &table.place)?,
        }
    }
    Ok(graph)
}

impl<'a> Graph<'a> {
    fn add(&mut self, link: LinkPlan, place: &Place<'a>) -> Result<(), ScenarioError> {
        if self.links.iter().any(|l| l.name == link.name) {
            return Err(place.error(format!(
                "there are two links {}; give each a name of its own",
                quoted(&link.name)
            )));
        }
        self.links.push(link);
        self.places.push(place.clone());
        Ok(())
    }

    /// Adds the link, and the same link in the other direction.
    pub fn add_duplex(&mut self, there: LinkPlan, place: &Place<'a>) -> Result<(), ScenarioError> {
        // Ranges keep their names, so that both directions draw the same values.
        let back = LinkPlan {
            name: format!("{}.back", there.name),
            from: there.to,
            to: there.from,
            ..there.clone()
        };
        let twin = Some(self.links.len() + 1);
        self.add(LinkPlan { twin, ..there }, place)?;
        self.add(back, place)
    }

    /// The node that `item` names.
    pub fn node(&self, item: &Item<'_>) -> Result<usize, ScenarioError> {
        find(item, "node", self.nodes.iter().map(String::as_str))
    }

    /// The link that `item` names.
    pub fn link(&self, item: &Item<'_>) -> Result<usize, ScenarioError> {
        find(item, "link", self.links.iter().map(|l| l.name.as_str()))
    }
}

fn find<'n>(
    item: &Item<'_>,
    what: &str,
    names: impl Iterator<Item = &'n str> + Clone,
) -> Result<usize, ScenarioError> {
    let name = item.text(&format!("the name of a {what}"))?;
    names.clone().position(|n| n == name).ok_or_else(|| {
        item.place.error(format!(
            "no link makes the {what} {}; {}",
            quoted(name),
            suggest(name, names)
        ))
    })
}

pub(super) fn unlimited(name: &str, from: usize, to: usize) -> LinkPlan {
    LinkPlan {
        name: name.to_owned(),
        from,
        to,
        rate: RatePlan::Unlimited,
        delay: Quantity::fixed(0.0),
        loss: LossPlan::NONE,
        queue: QueuePlan::Infinite,
        twin: None,
        jitter: None,
        reorder: None,
        router_of_scheme: false,
    }
}

/// Reads a link's table, in either form.
pub(super) fn link(
    table: &Table<'_>,
    name: &str,
    from: usize,
    to: usize,
) -> Result<LinkPlan, ScenarioError> {
    let component = format!("link.{name}");
    let mut link = unlimited(name, from, to);
    link.rate = match (
        table.quantity("rate", &RATE, &component)?,
        table.get("trace"),
    ) {
        (Some(_), Some(trace)) => {
            return Err(trace
                .place
                .error("a link has a rate or a trace, not both; remove one"));
        }
        (Some(rate), None) => RatePlan::Fixed(rate),
        (None, Some(item)) => RatePlan::Trace(trace(table, &item)?),
        (None, None) => RatePlan::Unlimited,
    };
    const OF_TRACES: [(&str, &str); 3] = [
        ("once", "ends"),
        ("part", "has parts"),
        ("mean", "is scaled"),
    ];
    if !table.has("trace") {
        for (key, what) in OF_TRACES {
            if let Some(item) = table.get(key) {
                return Err(item.place.error(format!(
                    "only a trace {what}; remove it or write trace = \"...\""
                )));
            }
        }
    }
    if let Some(delay) = table.quantity("delay", &DELAY, &component)? {
        link.delay = delay;
    }
    if let Some(item) = table.get("loss") {
        link.loss = impairment::loss(&item, &format!("{component}.loss"))?;
    }
    if let Some(item) = table.get("jitter") {
        link.jitter = Some(impairment::jitter(&item, &format!("{component}.jitter"))?);
    }
    if let Some(item) = table.get("reorder") {
        link.reorder = Some(impairment::reorder(&item, &format!("{component}.reorder"))?);
    }
    if let Some(item) = table.get("queue") {
        link.queue = queue::read(&item, &format!("{component}.queue"))?;
        let waits = !matches!(link.rate, RatePlan::Unlimited);
        if !waits && !matches!(link.queue, QueuePlan::Infinite) {
            return Err(item
                .place
                .error("nothing waits for a link without a rate; remove it or write a rate"));
        }
    }
    if let Some(item) = table.get("router") {
        link.router_of_scheme = item.word(&[("scheme", true)])?;
        if matches!(link.rate, RatePlan::Unlimited) {
            return Err(item
                .place
                .error("a link without a rate is no bottleneck; remove it or write a rate"));
        }
        if let Some(kind) = link.queue.router() {
            return Err(item.place.error(format!(
                "the queue is a router already, {kind}; remove one of the two"
            )));
        }
    }
    Ok(link)
}

/// Reads a trace and its settings.
fn trace(table: &Table<'_>, item: &Item<'_>) -> Result<TracePlan, ScenarioError> {
    let mean = match table.get("mean") {
        None => None,
        Some(item) => match item.quantity(&RATE, "mean")? {
            q if q.varies() => {
                return Err(item
                    .place
                    .error("this cannot be a range; write one rate such as \"12Mbps\""));
            }
            q => Some(q),
        },
    };
    Ok(TracePlan {
        name: match item.line() {
            // A path may contain whatever a file system accepts.
            Ok(path) if path.contains('/') => path.to_owned(),
            _ => item.name("-_./")?.to_owned(),
        },
        once: table.get("once").map_or(Ok(false), |item| item.boolean())?,
        part: table
            .get("part")
            .map_or(Ok(Part::Whole), |item| item.word(&Part::NAMES))?,
        mean,
    })
}
