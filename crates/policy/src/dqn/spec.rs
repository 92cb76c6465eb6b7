//! The settings of an agent that goes on learning.

use serde::{Deserialize, Serialize};

use crate::Shaping;

/// The settings of an agent that goes on learning. `[training.online]` of a model's card may set
/// each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DqnSpec {
    /// The discount for each later decision, 0 to below 1. The default is Table II's 0.93. It has
    /// to be the training's, or the network unlearns its values.
    pub gamma: f64,
    /// How the reward is shaped; it has to be the training's.
    pub reward: Shaping,
    /// Adam's learning rate, above 0 to 1. It is small, since the training saw far more than one
    /// flow does.
    pub learning_rate: f32,
    /// The loss of a difference between a value and its target.
    pub loss: TdLoss,
    /// Does the learned network choose the next action and the target network only give its value
    /// (van Hasselt et al. 2016)? If not, the target network does both, as in Eq. 3.
    pub double: bool,
    /// The gradient is scaled down to this norm, above 0.
    pub gradient_norm: f32,
    /// The number of transitions in a gradient step, 1 to 1024.
    pub batch: usize,
    /// Decisions from one gradient step to the next, at least 1.
    pub every: u64,
    /// Gradient steps from one copy into the target network to the next, at least 1.
    pub target_every: u64,
    /// The number of transitions in the memory, `batch` to a million.
    pub capacity: usize,
    /// The number of transitions before the first gradient step, at most `capacity`.
    pub warmup: usize,
}

/// The loss of a difference between a value and its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TdLoss {
    /// Half the square up to a difference of 1, linear beyond (`torch.nn.SmoothL1Loss`).
    Huber,
    /// The square (`torch.nn.MSELoss`). Its gradient is twice that of Eq. 2.
    Mse,
}

impl Default for DqnSpec {
    fn default() -> DqnSpec {
        DqnSpec {
            gamma: 0.93,
            reward: Shaping::default(),
            learning_rate: 3e-7,
            loss: TdLoss::Huber,
            double: false,
            gradient_norm: 10.0,
            batch: 32,
            every: 8,
            target_every: 250,
            capacity: 10_000,
            warmup: 1000,
        }
    }
}

impl DqnSpec {
    /// Checks that all settings are in range.
    ///
    /// # Errors
    /// One line.
    pub fn check(&self) -> Result<(), String> {
        let within = |name: &str, value: f64, is_right: bool, right: &str| match is_right {
            true => Ok(()),
            false => Err(format!("{name} is {value}, must be {right}")),
        };
        let count = |name: &str, value: usize, least: usize, most: usize| {
            let right = format!("{least} to {most}");
            within(name, value as f64, (least..=most).contains(&value), &right)
        };
        let (rate, norm) = (self.learning_rate, self.gradient_norm);
        within(
            "gamma",
            self.gamma,
            (0.0..1.0).contains(&self.gamma),
            "0 to below 1",
        )?;
        self.reward.check()?;
        within(
            "learning_rate",
            rate.into(),
            rate > 0.0 && rate <= 1.0,
            "above 0 to 1",
        )?;
        within("gradient_norm", norm.into(), norm > 0.0, "above 0")?;
        count("batch", self.batch, 1, 1024)?;
        count("every", self.every as usize, 1, usize::MAX)?;
        count("target_every", self.target_every as usize, 1, usize::MAX)?;
        count("capacity", self.capacity, self.batch, 1_000_000)?;
        count("warmup", self.warmup, 1, self.capacity)
    }
}
