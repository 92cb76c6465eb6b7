//! What happens to links during a run: `[[at]]`.

use super::links::Graph;
use crate::ScenarioError;
use crate::plan::ChangePlan;
use crate::quantity::{DELAY, RATE, TIME};
use crate::reader::Table;

const MAX_CHANGES: usize = 100_000;

/// `end` is the run's, in ns.
pub(super) fn read(
    root: &Table<'_>,
    graph: &Graph<'_>,
    end: f64,
) -> Result<Vec<ChangePlan>, ScenarioError> {
    let tables = root.list("at", &["time", "link", "rate", "delay", "loss"])?;
    if let Some(table) = tables.get(MAX_CHANGES) {
        return Err(table
            .place
            .error(format!("too many changes; write at most {MAX_CHANGES}")));
    }
    let change = |(i, table): (usize, &Table<'_>)| {
        let component = format!("at.{i}");
        let time = table.require("time", "\"10s\"")?;
        let at = time.quantity(&TIME, &format!("{component}.time"))?;
        if at.low >= end {
            return Err(time.place.error(format!(
                "this is not before the run's end; write less than {}s",
                end / 1e9
            )));
        }
        let link = match (table.get("link"), graph.short_form) {
            (None, true) => 0,
            _ => graph.link(&table.require("link", &format!("\"{}\"", graph.links[0].name))?)?,
        };
        let rate = table.quantity("rate", &RATE, &component)?;
        let delay = table.quantity("delay", &DELAY, &component)?;
        let loss = table
            .get("loss")
            .map(|item| item.probability(&format!("{component}.loss")))
            .transpose()?;
        if rate.is_none() && delay.is_none() && loss.is_none() {
            return Err(table
                .place
                .error("nothing changes; write a rate, a delay or a loss"));
        }
        Ok(ChangePlan {
            at,
            link,
            rate,
            delay,
            loss,
        })
    };
    tables.iter().enumerate().map(change).collect()
}
