//! Parses TOML into a [`Plan`], with every check that needs no trace file.

mod changes;
mod impairment;
mod links;
mod queue;
mod switches;
mod topology;
mod traffic;

use toml::de::DeTable;

use crate::plan::{MAX_EVENTS, Plan, RatePlan};
use crate::quantity::{PACKET_SIZE, Quantity, TIME};
use crate::reader::{Document, Place, Table};
use crate::{ScenarioError, Transport};

/// The version of the schema that this code reads.
const SCHEMA: u64 = 1;
/// The longest text; a long schedule of changes fits well within.
pub(crate) const MAX_TEXT: usize = 4 << 20;
/// The longest run in seconds: more than eleven days.
pub(crate) const MAX_SECONDS: f64 = 1e6;
/// The largest packet over a trace, as in mahimahi: an opportunity is 1500 bytes and 4 of TUN
/// header.
const MAX_TRACE_PACKET: f64 = 1500.0;
/// The size of an acknowledgement: IP and TCP headers with timestamps.
const ACK_SIZE: f64 = 52.0;

const KEYS: &[&str] = &[
    "schema",
    "name",
    "paper",
    "description",
    "seconds",
    "training",
    "packet_size",
    "ack_size",
    "transport",
    "bottleneck",
    "return",
    "link",
    "topology",
    "flow",
    "cross",
    "at",
    "every",
    "switches",
    "varies",
    "sweep",
];

/// The contents of a scenario's file: texts for people, and the plan.
#[derive(Clone, Debug)]
pub(crate) struct Parsed {
    pub name: String,
    pub paper: String,
    pub description: String,
    pub seconds: f64,
    pub training: bool,
    pub plan: Plan,
}

/// Parses a text as TOML and passes its root to `read`. `origin` names the text in errors.
pub(crate) fn document<T>(
    text: &str,
    origin: &str,
    read: impl FnOnce(&Table<'_>) -> Result<T, ScenarioError>,
) -> Result<T, ScenarioError> {
    let document = Document { origin, text };
    if text.len() > MAX_TEXT {
        let what = format!(
            "{} bytes are too long for a scenario; write at most {MAX_TEXT}",
            text.len()
        );
        return Err(ScenarioError::Syntax {
            origin: origin.to_owned(),
            line: 1,
            what,
        });
    }
    let toml = DeTable::parse(text).map_err(|e| document.syntax_error(&e))?;
    read(&Table::root(&document, &toml, KEYS)?)
}

/// Reads and checks a whole scenario.
pub(crate) fn parse(text: &str, origin: &str) -> Result<Parsed, ScenarioError> {
    document(text, origin, read)
}

fn read(root: &Table<'_>) -> Result<Parsed, ScenarioError> {
    if let Some(sweep) = root.get("sweep") {
        return Err(sweep
            .place
            .error("a sweep makes several scenarios of this file; name one of them"));
    }
    let schema = root.require("schema", "1")?;
    match schema.whole(0, u64::MAX)? {
        SCHEMA => {}
        other => {
            return Err(schema.place.error(format!(
                "schema {other} is unknown; this version reads {SCHEMA}"
            )));
        }
    }
    let line = |key| root.get(key).map_or(Ok(""), |item| item.line());
    let name = root
        .require("name", "\"my-scenario\"")?
        .name("-_.:=%+")?
        .to_owned();
    let (paper, description) = (line("paper")?.to_owned(), line("description")?.to_owned());
    let seconds = seconds(root)?;
    let training = root
        .get("training")
        .map_or(Ok(true), |item| item.boolean())?;
    let size = |key, default| match root.get(key) {
        None => Ok(default),
        Some(item) => match item.quantity(&PACKET_SIZE, key)? {
            q if q.varies() => Err(item
                .place
                .error("this cannot be a range; write one size such as \"1500B\"")),
            q => Ok(q.low),
        },
    };
    let (packet_size, ack_size) = (size("packet_size", 1500.0)?, size("ack_size", ACK_SIZE)?);
    let transport = match root.get("transport") {
        None => Transport::Simple,
        Some(item) => item.word(&[("simple", Transport::Simple), ("linux", Transport::Linux)])?,
    };

    let graph = links::read(root)?;
    let mut traffic = traffic::read(root, &graph, seconds, packet_size)?;
    if let Some(topology) = &graph.topology {
        topology.add_load(&graph, &mut traffic, packet_size)?;
    }
    let changes = changes::at(root, &graph, seconds * 1e9)?;
    let every = changes::every(root, &graph, seconds * 1e9)?;
    let varies = varies(root, &graph)?;
    let mut plan = Plan {
        schema: SCHEMA,
        duration: (seconds * 1e9).round(),
        packet_size,
        ack_size,
        transport,
        nodes: graph.nodes,
        links: graph.links,
        flows: traffic.flows,
        cross: traffic.cross,
        changes,
        start_jitter: varies.start,
        trace_offset: varies.trace_offset,
        host_jitter: varies.host_jitter,
        every,
        switches: None,
    };
    plan.switches = switches::read(root, &plan)?;
    if plan.duration > plan.longest() {
        return Err(root.place.error(format!(
            "random events may number over {MAX_EVENTS}; write longer gaps, or seconds of at most {}",
            (plan.longest() / 1e9).floor()
        )));
    }
    check_packets(&plan, root)?;
    check_bdp(&plan, &graph.places)?;
    Ok(Parsed {
        name,
        paper,
        description,
        seconds,
        training,
        plan,
    })
}

fn seconds(root: &Table<'_>) -> Result<f64, ScenarioError> {
    let item = root.require("seconds", "60")?;
    item.number()
        .filter(|s| (1e-3..=MAX_SECONDS).contains(s))
        .ok_or_else(|| {
            item.place.error(format!(
                "write a number of seconds from 0.001 to {MAX_SECONDS}, such as 60"
            ))
        })
}

/// The table of what the seed varies, besides what is random by nature.
#[derive(Debug, Default)]
struct Varies {
    start: Option<Quantity>,
    trace_offset: Option<Quantity>,
    host_jitter: Option<Quantity>,
}

fn varies(root: &Table<'_>, graph: &links::Graph<'_>) -> Result<Varies, ScenarioError> {
    let Some(item) = root.get("varies") else {
        return Ok(Varies::default());
    };
    let table = item.table(&["start", "trace_offset", "host_jitter"])?;
    let range = |key, example: &str| match table.get(key) {
        None => Ok(None),
        Some(item) => match item
            .text(&format!("a range of times such as {example}"))
            .and_then(|_| item.quantity(&TIME, &format!("varies.{key}")))?
        {
            q if q.varies() => Ok(Some(q)),
            _ => Err(item.place.error(format!(
                "one value does not vary; write a range such as {example}"
            ))),
        },
    };
    let start = range("start", "\"0ms..50ms\"")?;
    let trace_offset = range("trace_offset", "\"0s..140s\", the trace's length")?;
    if trace_offset.is_some()
        && !graph
            .links
            .iter()
            .any(|l| matches!(l.rate, RatePlan::Trace(_)))
    {
        return Err(table.place.error(
            "trace_offset shifts traces, and no link has one; remove it or write trace = \"...\"",
        ));
    }
    Ok(Varies {
        start,
        trace_offset,
        host_jitter: table.quantity("host_jitter", &TIME, "varies")?,
    })
}

/// Checks that no packet is larger than a trace's opportunity.
fn check_packets(plan: &Plan, root: &Table<'_>) -> Result<(), ScenarioError> {
    if !plan
        .links
        .iter()
        .any(|l| matches!(l.rate, RatePlan::Trace(_)))
    {
        return Ok(());
    }
    let cross = plan.cross.iter().map(|c| c.packet_size.high);
    match cross.chain([plan.packet_size, plan.ack_size]).find(|&size| size > MAX_TRACE_PACKET) {
        None => Ok(()),
        Some(size) => Err(root.place.error(format!(
            "packets of {size} bytes do not fit a trace's delivery opportunity; write at most {MAX_TRACE_PACKET}"
        ))),
    }
}

/// Checks that a queue in BDP has a rate and a round trip.
fn check_bdp(plan: &Plan, places: &[Place<'_>]) -> Result<(), ScenarioError> {
    let routes = links::routes(&plan.nodes, &plan.links);
    let crossed: Vec<usize> = plan
        .flows
        .iter()
        .flat_map(|f| routes.round_trip(f.from, f.to, f.route.as_deref()))
        .collect();
    for (i, link) in plan.links.iter().enumerate() {
        if link.queue.bdp().is_none() {
            continue;
        }
        if !matches!(link.rate, RatePlan::Fixed(_)) {
            return Err(places[i].error("a queue in bdp needs a link with a rate; write packets or bytes such as \"100pkt\""));
        }
        if !crossed.contains(&i) {
            return Err(places[i].error("a queue in bdp needs a flow over this link; write packets or bytes such as \"100pkt\""));
        }
    }
    Ok(())
}
