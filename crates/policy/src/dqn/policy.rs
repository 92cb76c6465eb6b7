//! A policy that goes on learning.

use std::mem::replace;
use std::sync::mpsc::SyncSender;

use headway_cc::{Probe, Setup, Stream};

use super::trainer::{Done, Progress, Refused, Step, Trainer, UnderWay};
use super::{DqnSpec, Transition};
use crate::action::largest;
use crate::nn::{NetError, Network, State};
use crate::{Answer, Interval, Policy, Record, Utility};

/// Answers with the action of the largest Q-value or a random one, and learns from what follows
/// (Owl, Algorithm 1).
///
/// If an observation or a Q-value is not finite, it gives the [neutral answer](Answer::NEUTRAL) and
/// counts it in `refused_decisions`. A loss that is not finite ends the learning (`learning` is
/// then 0), and the network keeps its last parameters.
#[derive(Debug)]
pub struct DqnPolicy {
    spec: DqnSpec,
    /// The network that decides. It has the parameters of the newest finished gradient step.
    network: Network,
    /// The number of gradient steps, including those of the network with which it began.
    steps: u64,
    training: Training,
    /// The thread that takes gradient steps. Without one, steps are taken at once.
    step_thread: Option<SyncSender<Step>>,
    utility: Utility,
    epsilon: f64,
    random: Stream,
    /// The last observation and its action. There is none after a neutral answer or one that was
    /// not carried out.
    before: Vec<f32>,
    action: Option<usize>,
    decisions: u64,
    refused: u64,
    loss: f32,
    /// Gradient steps that were due while another was in progress, and transitions that were
    /// dropped then. If they grow, the other thread is too slow.
    skipped_steps: u64,
    dropped_transitions: u64,
    // Work space.
    state: State,
    values: Vec<f32>,
}

/// Where the trainer is.
#[derive(Debug)]
enum Training {
    /// With the policy, together with space for the parameters of a step on another thread.
    Here(Box<Trainer>, Option<Network>),
    Elsewhere(UnderWay),
    Ended,
}

impl DqnPolicy {
    /// The policy of a flow that has just begun. `epsilon` is the share of random actions.
    ///
    /// # Errors
    /// [`NetError`], one line, as [`Learner::new`](super::Learner::new).
    pub fn new(
        network: Network,
        spec: DqnSpec,
        utility: Utility,
        epsilon: f64,
        setup: &Setup,
    ) -> Result<DqnPolicy, NetError> {
        let trainer = Trainer::new(network.clone(), spec.clone())?;
        Ok(DqnPolicy {
            spec,
            steps: 0,
            training: Training::Here(Box::new(trainer), None),
            step_thread: None,
            utility,
            epsilon,
            random: setup.stream("dqn"),
            before: vec![0.0; network.spec().inputs()],
            action: None,
            decisions: 0,
            refused: 0,
            loss: 0.0,
            skipped_steps: 0,
            dropped_transitions: 0,
            state: network.state(),
            values: vec![0.0; network.spec().outputs()],
            network,
        })
    }

    /// The network that decides.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The number of gradient steps, including those of the network with which it began.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Continues with a network that another flow learned in this many gradient steps, if its size
    /// is the same.
    pub fn continue_from(&mut self, network: &Network, steps: u64) {
        if let Training::Here(trainer, _) = &mut self.training {
            trainer.continue_from(network, steps);
            let learner = trainer.learner();
            let parameters = learner.network().parameters();
            self.network.parameters_mut().copy_from_slice(parameters);
            self.steps = learner.steps();
        }
    }

    /// Does it still learn?
    pub fn is_learning(&self) -> bool {
        !matches!(self.training, Training::Ended)
    }

    /// Takes the parameters of a gradient step that another thread has finished.
    fn take_back(&mut self) {
        let Training::Elsewhere(step) = &mut self.training else {
            return;
        };
        match step.look() {
            Progress::UnderWay => {}
            Progress::Lost => self.training = Training::Ended,
            Progress::Done(Done {
                trainer,
                network,
                loss,
            }) => {
                let spare = replace(&mut self.network, network);
                self.steps = trainer.learner().steps();
                self.training = Training::Here(trainer, Some(spare));
                self.on_loss(loss);
            }
        }
    }

    fn on_loss(&mut self, loss: Option<f32>) {
        match loss {
            Some(loss) => self.loss = loss,
            None => self.training = Training::Ended,
        }
    }

    /// Stores what followed the last decision, and learns if a step is due.
    fn learn(&mut self, observation: &[f32], interval: &Interval) {
        let Some(action) = self.action else { return };
        let Some(reward) = self.utility.of(interval) else {
            return;
        };
        let transition = Transition {
            state: &self.before,
            action,
            reward: reward as f32,
            next: observation,
        };
        let DqnSpec { every, warmup, .. } = self.spec;
        let is_due = self.decisions.is_multiple_of(every);
        let trainer = match &mut self.training {
            Training::Here(trainer, _) => trainer,
            Training::Elsewhere(step) => {
                self.dropped_transitions += u64::from(!step.push(transition));
                self.skipped_steps += u64::from(is_due);
                return;
            }
            Training::Ended => return,
        };
        trainer.push(transition);
        if trainer.transitions() >= warmup && is_due {
            trainer.draw(self.spec.batch, &mut self.random);
            self.step();
        }
    }

    /// Takes a gradient step, or sends one to another thread.
    fn step(&mut self) {
        let Training::Here(mut trainer, spare) = replace(&mut self.training, Training::Ended)
        else {
            return;
        };
        match &self.step_thread {
            Some(thread) => {
                let spare = spare.unwrap_or_else(|| self.network.clone());
                self.training = match UnderWay::send(thread, trainer, spare) {
                    Ok(step) => Training::Elsewhere(step),
                    Err(Refused::Busy(trainer, spare)) => {
                        self.skipped_steps += 1;
                        Training::Here(trainer, Some(*spare))
                    }
                    Err(Refused::Gone) => Training::Ended,
                };
            }
            None => {
                let loss = trainer.step(&mut self.network);
                self.steps = trainer.learner().steps();
                self.training = Training::Here(trainer, spare);
                self.on_loss(loss);
            }
        }
    }

    fn choose(&mut self, observation: &[f32]) -> Option<usize> {
        let values = &mut self.values;
        self.network.forward(&mut self.state, observation, values);
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
        self.take_back();
        // In fallback Cubic, not the policy, causes what follows.
        let is_carried_out = !interval.latest.has(Record::TRIPPED);
        if is_sound && is_carried_out {
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

    fn learned(&self) -> Option<(&Network, u64)> {
        Some((&self.network, self.steps))
    }

    fn step_on_thread(&mut self, thread: &SyncSender<Step>) {
        self.step_thread = Some(thread.clone());
    }

    fn has_ended_learning(&self) -> bool {
        !self.is_learning()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.value("refused_decisions", self.refused as f64);
        probe.value("learning", f64::from(u8::from(self.is_learning())));
        probe.value("updates", self.steps as f64);
        probe.value("td_loss", f64::from(self.loss));
        if self.step_thread.is_some() {
            probe.value("skipped_updates", self.skipped_steps as f64);
            probe.value("dropped_transitions", self.dropped_transitions as f64);
        }
    }
}
