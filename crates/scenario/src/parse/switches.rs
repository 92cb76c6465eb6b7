//! Reads `[switches]`: the switches whose measurements senders receive.

use crate::ScenarioError;
use crate::error::quoted;
use crate::plan::Plan;
use crate::quantity::{DELAY, PERIOD, Quantity, TIME};
use crate::reader::{Item, Table};
use crate::switches::{Known, SwitchesPlan, switches_on};

/// Owl's controller reads its switches once a second (§VI).
const PERIOD_NS: f64 = 1e9;

/// Reads the table, and checks it against the rest of the plan, which has no switches yet.
pub(super) fn read(root: &Table<'_>, plan: &Plan) -> Result<Option<SwitchesPlan>, ScenarioError> {
    let Some(item) = root.get("switches") else {
        return Ok(None);
    };
    let table = item.table(&["known", "period", "latency", "until"])?;
    let routes = super::links::routes(&plan.nodes, &plan.links);
    let under_test = plan.flows.iter().filter(|f| f.scheme.is_none());
    let ways = under_test.map(|f| (f.from, f.to, f.route.as_deref()));
    let switches = switches_on(&routes, ways);
    if switches.is_empty() {
        return Err(table.place.error(
            "no flow under test crosses a switch; write [[link]] with nodes between its ends",
        ));
    }
    let ends = plan.flows.iter().map(|f| (f.from, f.to));
    let ends = ends.chain(plan.cross.iter().map(|c| (c.from, c.to)));
    let mut ends = ends.flat_map(|(from, to)| [from, to]);
    if let Some(end) = ends.find(|end| switches.contains(end)) {
        return Err(table.place.error(format!(
            "{} is a switch, and traffic begins or ends there; give that a node of its own",
            quoted(&plan.nodes[end])
        )));
    }
    let period = table.quantity("period", &PERIOD, "switches")?;
    let latency = table.quantity("latency", &DELAY, "switches")?;
    Ok(Some(SwitchesPlan {
        known: known(&table.require("known", "\"20%\"")?, switches.len() as u64)?,
        period: period.unwrap_or(Quantity::fixed(PERIOD_NS)),
        latency: latency.unwrap_or(Quantity::fixed(0.0)),
        until: table.quantity("until", &TIME, "switches")?,
    }))
}

/// Reads a count, or a share as text.
fn known(item: &Item<'_>, switches: u64) -> Result<Known, ScenarioError> {
    if item.number().is_none() {
        return Ok(Known::Share(item.probability("switches.known")?));
    }
    Ok(match item.whole(0, switches)? {
        0 => Known::Share(Quantity::fixed(0.0)),
        all if all == switches => Known::Share(Quantity::fixed(1.0)),
        some => Known::Count(some),
    })
}
