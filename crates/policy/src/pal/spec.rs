//! The settings of an agent's learning.

use serde::{Deserialize, Serialize};

use crate::nn::{NetError, OptimizerSpec};

/// The settings of an agent's learning. The paper gives none of these numbers;
/// docs/decisions/0040-rax.md says what they change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PalSpec {
    /// GRU units of the actor.
    pub actor_units: usize,
    /// GRU units of each critic.
    pub critic_units: usize,
    /// The optimiser of the actor's weights.
    pub actor_optimizer: OptimizerSpec,
    /// The optimiser of the critics' weights.
    pub critic_optimizer: OptimizerSpec,
    /// Weight of the entropy (beta of Eq. 3 and 6), 0 or more.
    pub entropy: f32,
    /// The share of the window that one unit of the actor's output stands for.
    pub action_scale: f32,
    /// The standard deviation of an actor with random weights, in units of actions.
    pub initial_deviation: f32,
    /// The minimum standard deviation, above 0 and below the initial one. If a flow's actions
    /// hardly differ, it cannot tell their effect from that of other flows (decision 40).
    pub least_deviation: f32,
    /// The norm to which each gradient is scaled down.
    pub gradient_norm: f32,
    /// The share of the advantages' recent mean square that each segment keeps; advantages are
    /// divided by its root. 0 leaves advantages as they are.
    pub advantage_memory: f32,
    /// What is subtracted from advantages.
    pub centre: Centre,
    /// How rewards are averaged.
    pub weighting: Weighting,
    /// The smallest number of steps of a segment (10 in Algorithm 3).
    pub shortest: usize,
    /// The largest number of steps of a segment, however long a round is.
    pub longest: usize,
    /// The largest number of segments that wait for feedback; beyond it the oldest is dropped.
    pub most_awaited: usize,
    /// The largest norm of weights; above it they have diverged.
    pub largest_norm: f32,
}

/// What is subtracted from advantages. With it, a constant error of the critic does no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Centre {
    /// Nothing is subtracted (Eq. 6).
    Nothing,
    /// The recent mean of the advantages.
    Late,
    /// The mean of the advantages in the segment.
    Segment,
}

/// How the rewards of a segment are averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weighting {
    /// `R = gamma r + (1 - gamma) R'` (Eq. 1).
    Average,
    /// `R = (r + gamma R') (1 - gamma)`, as Algorithm 2, line 9, is printed.
    AsPrinted,
}

impl Weighting {
    /// The average from one step on, given the average from the next step on.
    #[inline]
    pub fn fold(self, gamma: f32, reward: f32, next: f32) -> f32 {
        match self {
            Weighting::Average => gamma * reward + (1.0 - gamma) * next,
            Weighting::AsPrinted => (reward + gamma * next) * (1.0 - gamma),
        }
    }
}

impl Default for PalSpec {
    fn default() -> PalSpec {
        let adam = |lr| OptimizerSpec::Adam {
            lr,
            betas: [0.9, 0.999],
            eps: 1e-8,
        };
        PalSpec {
            actor_units: 10,
            critic_units: 10,
            actor_optimizer: adam(1e-3),
            critic_optimizer: adam(3e-3),
            entropy: 1e-3,
            action_scale: 0.5,
            initial_deviation: 0.5,
            least_deviation: 0.3,
            gradient_norm: 1.0,
            advantage_memory: 0.9,
            centre: Centre::Late,
            weighting: Weighting::Average,
            shortest: 10,
            longest: 1024,
            most_awaited: 64,
            largest_norm: 1e3,
        }
    }
}

impl PalSpec {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`NetError`], one line.
    pub fn check(&self) -> Result<(), NetError> {
        self.actor_optimizer.check()?;
        self.critic_optimizer.check()?;
        let within = |name: &str, value: f32, is_right: bool, right: &str| match is_right {
            true => Ok(()),
            false => Err(NetError(format!(
                "partial action learning: {name} is {value}, must be {right}"
            ))),
        };
        let positive = |name, value: f32| {
            within(
                name,
                value,
                value.is_finite() && value > 0.0,
                "above 0 and finite",
            )
        };
        let not_negative =
            |name, value: f32| within(name, value, value.is_finite() && value >= 0.0, "0 or more");
        not_negative("entropy", self.entropy)?;
        positive("action_scale", self.action_scale)?;
        positive("initial_deviation", self.initial_deviation)?;
        positive("least_deviation", self.least_deviation)?;
        positive("gradient_norm", self.gradient_norm)?;
        positive("largest_norm", self.largest_norm)?;
        within(
            "least_deviation",
            self.least_deviation,
            self.least_deviation < self.initial_deviation,
            "below initial_deviation",
        )?;
        let memory = self.advantage_memory;
        within(
            "advantage_memory",
            memory,
            (0.0..1.0).contains(&memory),
            "0 to below 1",
        )?;
        let count = |name, value: usize, least: usize, most: usize| {
            let right = format!("{least} to {most}");
            within(name, value as f32, (least..=most).contains(&value), &right)
        };
        count("actor_units", self.actor_units, 1, 256)?;
        count("critic_units", self.critic_units, 1, 256)?;
        count("shortest", self.shortest, 1, 1 << 12)?;
        count("longest", self.longest, self.shortest, 1 << 16)?;
        count("most_awaited", self.most_awaited, 2, 64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three rewards and what follows them, with one gamma, by hand.
    #[test]
    fn rewards_are_averaged_by_eq_1_or_as_algorithm_2_is_printed() {
        let average = |weighting: Weighting| {
            let rewards = [8.0, 4.0, 16.0];
            (rewards.iter().rev()).fold(2.0, |next, r| weighting.fold(0.25, *r, next))
        };
        // 0.25 * 16 + 0.75 * 2 = 5.5; 0.25 * 4 + 0.75 * 5.5 = 5.125; 0.25 * 8 + 0.75 * 5.125.
        assert_eq!(average(Weighting::Average), 5.84375);
        // 0.75 * (16 + 0.5) = 12.375; 0.75 * (4 + 3.09375) = 5.3203125; 0.75 * (8 + 1.330078125).
        assert_eq!(average(Weighting::AsPrinted), 6.997_558_6);
    }
}
