//! Reads the changes of links during a run: `[[at]]` once, `[[every]]` again and again.

use super::links::Graph;
use crate::ScenarioError;
use crate::plan::{ChangePlan, EffectPlan, EveryPlan};
use crate::quantity::{DELAY, GAP, Quantity, RATE, TIME};
use crate::reader::Table;

const MAX_CHANGES: usize = 100_000;

/// Reads changes at times that the file names. `end` is the end of the run, in ns.
pub(super) fn at(
    root: &Table<'_>,
    graph: &Graph<'_>,
    end: f64,
) -> Result<Vec<ChangePlan>, ScenarioError> {
    let mut changes = Vec::new();
    let tables = root.list("at", &["time", "link", "rate", "delay", "loss"])?;
    check_number(&tables)?;
    for (i, table) in tables.iter().enumerate() {
        let component = format!("at.{i}");
        let time = table.require("time", "\"10s\"")?;
        let at = time.quantity(&TIME, &format!("{component}.time"))?;
        if at.low >= end {
            return Err(time.place.error(format!(
                "this is not before the run's end; write less than {}s",
                end / 1e9
            )));
        }
        let effects = effects(table, &component, graph)?;
        changes.extend(effects.into_iter().map(|effect| ChangePlan {
            at: at.clone(),
            effect,
        }));
    }
    Ok(changes)
}

/// Reads changes that recur.
pub(super) fn every(
    root: &Table<'_>,
    graph: &Graph<'_>,
    end: f64,
) -> Result<Vec<EveryPlan>, ScenarioError> {
    let mut all = Vec::new();
    const KEYS: &[&str] = &["gap", "link", "rate", "delay", "loss", "start", "stop"];
    let tables = root.list("every", KEYS)?;
    check_number(&tables)?;
    for (i, table) in tables.iter().enumerate() {
        let component = format!("every.{i}");
        let gap = table
            .require("gap", "\"1s..50s\"")?
            .quantity(&GAP, &format!("{component}.gap"))?;
        let start = table
            .quantity("start", &TIME, &component)?
            .unwrap_or(Quantity::fixed(0.0));
        let stop = table.quantity("stop", &TIME, &component)?;
        if start.low + gap.low >= end {
            return Err(table.place.error(format!(
                "nothing happens before the run's end; write a start and a gap that are together under {}s",
                end / 1e9
            )));
        }
        if let Some(stop) = &stop
            && stop.low <= start.high
        {
            return Err(table.place.error(format!(
                "it may stop at {}s, which is not after its latest start at {}s; write a later stop",
                stop.low / 1e9,
                start.high / 1e9
            )));
        }
        let effects = effects(table, &component, graph)?;
        all.extend(effects.into_iter().map(|effect| EveryPlan {
            gap: gap.clone(),
            start: start.clone(),
            stop: stop.clone(),
            effect,
        }));
    }
    Ok(all)
}

fn check_number(tables: &[Table<'_>]) -> Result<(), ScenarioError> {
    match tables.get(MAX_CHANGES) {
        None => Ok(()),
        Some(table) => Err(table
            .place
            .error(format!("too many changes; write at most {MAX_CHANGES}"))),
    }
}

/// The effects of a change: on one link, and on the way back if it has the bottleneck's delay.
fn effects(
    table: &Table<'_>,
    component: &str,
    graph: &Graph<'_>,
) -> Result<Vec<EffectPlan>, ScenarioError> {
    let link = match (table.get("link"), graph.short_form) {
        (None, true) => 0,
        _ => graph.link(&table.require("link", &format!("\"{}\"", graph.links[0].name))?)?,
    };
    let rate = table.quantity("rate", &RATE, component)?;
    let delay = table.quantity("delay", &DELAY, component)?;
    let loss = table
        .get("loss")
        .map(|item| item.probability(&format!("{component}.loss")))
        .transpose()?;
    if rate.is_none() && delay.is_none() && loss.is_none() {
        return Err(table
            .place
            .error("nothing changes; write a rate, a delay or a loss"));
    }
    let mut effects = vec![EffectPlan {
        link,
        rate,
        delay: delay.clone(),
        loss,
    }];
    // Ranges keep their names, so that both directions draw the same values.
    if let (Some(back), 0, Some(_)) = (graph.mirror, link, &delay) {
        effects.push(EffectPlan {
            link: back,
            rate: None,
            delay,
            loss: None,
        });
    }
    Ok(effects)
}
