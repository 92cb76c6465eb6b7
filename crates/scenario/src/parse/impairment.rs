//! Reads a link's loss, jitter and reordering.

use crate::ScenarioError;
use crate::impairment::{JitterPlan, LossPlan, ReorderPlan};
use crate::quantity::{PERIOD, Quantity};
use crate::reader::Item;

/// Reads a probability, or a table with a kind.
pub(super) fn loss(item: &Item<'_>, component: &str) -> Result<LossPlan, ScenarioError> {
    if !item.is_table() {
        return item.probability(component).map(LossPlan::Random);
    }
    let table = item.table(&["kind", "to_bad", "to_good", "loss_good", "loss_bad"])?;
    table
        .require("kind", "\"gilbert-elliott\"")?
        .word(&[("gilbert-elliott", ())])?;
    let probability = |key: &str, default: Option<f64>| match (table.get(key), default) {
        (None, Some(value)) => Ok(Quantity::fixed(value)),
        _ => table
            .require(key, "0.1")?
            .probability(&format!("{component}.{key}")),
    };
    // In Gilbert's model, a good link loses nothing and a bad one everything.
    Ok(LossPlan::GilbertElliott {
        to_bad: probability("to_bad", None)?,
        to_good: probability("to_good", None)?,
        loss_good: probability("loss_good", Some(0.0))?,
        loss_bad: probability("loss_bad", Some(1.0))?,
    })
}

/// Reads the largest extra delay, or a table with the mean of an exponential distribution.
pub(super) fn jitter(item: &Item<'_>, component: &str) -> Result<JitterPlan, ScenarioError> {
    if !item.is_table() {
        return item.quantity(&PERIOD, component).map(JitterPlan::Uniform);
    }
    let table = item.table(&["mean"])?;
    let mean = table.require("mean", "\"2ms\"")?;
    mean.quantity(&PERIOD, component)
        .map(JitterPlan::Exponential)
}

/// Reads how many packets are held back, and for how long.
pub(super) fn reorder(item: &Item<'_>, component: &str) -> Result<ReorderPlan, ScenarioError> {
    let table = item.table(&["probability", "delay"])?;
    Ok(ReorderPlan {
        probability: table
            .require("probability", "0.01")?
            .probability(&format!("{component}.probability"))?,
        delay: table
            .require("delay", "\"5ms\"")?
            .quantity(&PERIOD, &format!("{component}.delay"))?,
    })
}
