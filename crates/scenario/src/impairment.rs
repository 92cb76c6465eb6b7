//! What a link does to packets besides queueing them, with ranges that are not drawn yet.

use headway_net::{Jitter, Loss, Reorder};
use serde::Serialize;

use crate::quantity::Quantity;

/// Loss before the queue. A plain probability is serialised as such.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum LossPlan {
    Random(Quantity),
    GilbertElliott {
        to_bad: Quantity,
        to_good: Quantity,
        loss_good: Quantity,
        loss_bad: Quantity,
    },
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum JitterPlan {
    Uniform(Quantity),
    Exponential(Quantity),
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct ReorderPlan {
    pub probability: Quantity,
    pub delay: Quantity,
}

impl LossPlan {
    pub const NONE: LossPlan = LossPlan::Random(Quantity::ZERO);

    pub fn quantities(&self) -> Vec<&Quantity> {
        match self {
            LossPlan::Random(q) => vec![q],
            LossPlan::GilbertElliott {
                to_bad,
                to_good,
                loss_good,
                loss_bad,
            } => vec![to_bad, to_good, loss_good, loss_bad],
        }
    }

    /// Is the loss of packets random?
    pub fn draws(&self) -> bool {
        match self {
            LossPlan::Random(q) => q.high > 0.0 && q.low < 1.0,
            LossPlan::GilbertElliott { .. } => true,
        }
    }

    pub fn draw(&self, seed: u64) -> Option<Loss> {
        match self {
            LossPlan::Random(q) => random_loss(q.draw(seed)),
            LossPlan::GilbertElliott {
                to_bad,
                to_good,
                loss_good,
                loss_bad,
            } => Some(Loss::GilbertElliott {
                to_bad: to_bad.draw(seed),
                to_good: to_good.draw(seed),
                loss_good: loss_good.draw(seed),
                loss_bad: loss_bad.draw(seed),
            }),
        }
    }
}

/// Loss with this probability; `None` if it is zero.
pub(crate) fn random_loss(probability: f64) -> Option<Loss> {
    (probability > 0.0).then_some(Loss::Random { probability })
}

impl JitterPlan {
    pub fn quantity(&self) -> &Quantity {
        let (JitterPlan::Uniform(q) | JitterPlan::Exponential(q)) = self;
        q
    }

    pub fn draw(&self, seed: u64) -> Jitter {
        match self {
            JitterPlan::Uniform(q) => Jitter::Uniform {
                most: q.duration(seed),
            },
            JitterPlan::Exponential(q) => Jitter::Exponential {
                mean: q.duration(seed),
            },
        }
    }
}

impl ReorderPlan {
    pub fn draw(&self, seed: u64) -> Reorder {
        Reorder {
            probability: self.probability.draw(seed),
            delay: self.delay.duration(seed),
        }
    }
}
