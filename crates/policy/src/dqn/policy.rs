//! A policy that goes on learning.

use headway_cc::{Probe, Setup, Stream};

use super::{DqnSpec, Learner, Replay, Transition};
use crate::action::largest;
use crate::nn::{NetError, Network};
use crate::{Answer, Interval, Policy, Record, Utility};

/// Decides by the largest Q-value, at random otherwise, and learns from what follows (Owl,
/// Algorithm 1).
///
/// An observation or Q-values that are not finite give the [neutral answer](Answer::NEUTRAL),
/// counted as `refused_decisions`. A loss that is not finite ends the learning (`learning` is 0
/// then), and the network stays as it was before.
#[derive(Clone, Debug)]
pub struct DqnPolicy {
    learner: Learner,
    replay: Replay,
    utility: Utility,
    epsilon: f64,
    random: Stream,
    /// The last observation, and the action it was answered with; none after a neutral answer, and
    /// after one that was not carried out.
    before: Vec<f32>,
    action: Option<usize>,
    decisions: u64,
    refused: u64,
    is_learning: bool,
    loss: f32,
}

impl DqnPolicy {
    /// For a flow that has just begun. `epsilon` is the share of random actions.
    ///
    /// # Errors
    /// [`NetError`], one line, as [`Learner::new`].
    pub fn new(
        network: Network,
        spec: DqnSpec,
        utility: Utility,
        epsilon: f64,
        setup: &Setup,
    ) -> Result<DqnPolicy, NetError> {
        let inputs = network.spec().inputs();
        Ok(DqnPolicy {
            replay: Replay::new(spec.capacity, inputs),
            learner: Learner::new(network, spec)?,
            utility,
            epsilon,
            random: setup.stream("dqn"),
            before: vec![0.0; inputs],
            action: None,
            decisions: 0,
            refused: 0,
            is_learning: true,
            loss: 0.0,
        })
    }

    /// What has been learned so far.
    pub fn learner(&self) -> &Learner {
        &self.learner
    }

    /// Goes on from what another has learned in this many gradient steps, if it is of the same
    /// size.
    pub fn go_on_from(&mut self, network: &Network, steps: u64) {
        self.learner.go_on_from(network, steps);
    }

    /// Does it still learn?
    pub fn is_learning(&self) -> bool {
        self.is_learning
    }

    /// Keeps what followed the last decision, and learns if it is time.
    fn learn(&mut self, observation: &[f32], interval: &Interval) {
        let Some(action) = self.action else { return };
        let Some(reward) = self.utility.of(interval) else {
            return;
        };
        self.replay.push(Transition {
            state: &self.before,
            action,
            reward: reward as f32,
            next: observation,
        });
        let DqnSpec {
            batch,
            every,
            warmup,
            ..
        } = *self.learner.spec();
        if self.replay.len() >= warmup && self.decisions.is_multiple_of(every) {
            let batch = self.replay.sample(batch, &mut self.random);
            match self.learner.learn(batch) {
                Some(loss) => self.loss = loss,
                None => self.is_learning = false,
            }
        }
    }

    fn choose(&mut self, observation: &[f32]) -> Option<usize> {
        let values = self.learner.values(observation);
        if !values.iter().all(|v| v.is_finite()) {
            return None;
        }
        Some(match self.random.chance(self.epsilon) {
            true => self.random.below(values.len() as u64) as usize,
            false => largest(values),
        })
    }
}

impl Policy for DqnPolicy {
    fn decide(&mut self, observation: &[f32], interval: &Interval) -> Option<Answer> {
        let is_sound =
            observation.len() == self.before.len() && observation.iter().all(|x| x.is_finite());
        self.decisions += 1;
        // While the guard has the flow, what follows is Cubic's doing.
        let is_carried_out = !interval.latest.has(Record::TRIPPED);
        if is_sound && self.is_learning && is_carried_out {
            self.learn(observation, interval);
        }
        let chosen = match is_sound {
            true => self.choose(observation),
            false => None,
        };
        self.action = chosen.filter(|_| is_carried_out);
        let Some(action) = chosen else {
            self.refused += 1;
            return Some(Answer::NEUTRAL);
        };
        self.before.copy_from_slice(observation);
        Some(Answer::from(action as f32))
    }

    fn on_refused(&mut self) {
        self.action = None;
    }

    fn learner(&self) -> Option<&Learner> {
        Some(&self.learner)
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.value("refused_decisions", self.refused as f64);
        probe.value("learning", f64::from(u8::from(self.is_learning)));
        probe.value("gradient_steps", self.learner.steps() as f64);
        probe.value("td_loss", f64::from(self.loss));
    }
}
