//! The weights that are learned: the actor's and the critics'.

use headway_cc::Stream;
use serde::{Deserialize, Serialize};

use super::gaussian::{Gaussian, softplus_slope};
use super::nets::{self, MAX_OUTPUTS};
use super::segment::Segment;
use super::{PalSpec, Task};
use crate::nn::{NetError, Network, Optimizer, clip_norm};

/// The weights that agents act with, and what their optimisers know.
#[derive(Clone, Debug)]
pub struct Weights<const N: usize> {
    spec: PalSpec,
    pub(super) nets: Vec<Network>,
    optimizers: Vec<Optimizer>,
    moments: Moments,
    updates: u64,
    // Room to work in.
    gradient: Vec<f32>,
    slopes: Vec<f32>,
    returns: Vec<[f32; N]>,
    advantages: Vec<f32>,
}

/// Mean and mean square of the advantages of late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Moments {
    mean: f32,
    square: f32,
    /// How much of both is known yet, up to 1.
    weight: f32,
}

/// The weights, or a gradient, were not finite or too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the weights have diverged")]
pub struct Diverged;

impl<const N: usize> Weights<N> {
    /// Random weights, for observations of so many `inputs`. `groups` says how many rewards each critic predicts, in
    /// their order.
    ///
    /// # Errors
    /// [`NetError`], one line: a setting is out of range, or the groups are not of `N` rewards.
    pub fn random(
        spec: PalSpec,
        inputs: usize,
        groups: &[usize],
        stream: &mut Stream,
    ) -> Result<Weights<N>, NetError> {
        spec.check()?;
        if groups.iter().sum::<usize>() != N || N + 2 > MAX_OUTPUTS {
            return Err(NetError(format!(
                "partial action learning: critics of {groups:?} rewards, must be {N} in all, at most {}",
                MAX_OUTPUTS - 2
            )));
        }
        let nets: Vec<Network> = (nets::specs(&spec, inputs, groups).iter())
            .map(|net| nets::random(net, stream))
            .collect::<Result<_, _>>()?;
        let optimizer = |(n, net): (usize, &Network)| {
            let one = match n {
                0 => spec.actor_optimizer,
                _ => spec.critic_optimizer,
            };
            Optimizer::new(one, net.parameters().len())
        };
        let widest = nets.iter().map(|net| net.parameters().len()).max();
        Ok(Weights {
            optimizers: (nets.iter().enumerate())
                .map(optimizer)
                .collect::<Result<_, _>>()?,
            moments: Moments::default(),
            updates: 0,
            gradient: vec![0.0; widest.unwrap_or(0)],
            slopes: Vec::new(),
            returns: Vec::new(),
            advantages: Vec::new(),
            nets,
            spec,
        })
    }

    /// How they are learned.
    pub fn spec(&self) -> &PalSpec {
        &self.spec
    }

    /// The actor, then the critics.
    pub fn networks(&self) -> &[Network] {
        &self.nets
    }

    /// How many gradients were applied.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Applies the gradient of a segment whose actions are all rewarded (Algorithm 2).
    pub(super) fn learn(
        &mut self,
        task: &impl Task<N>,
        segment: &mut Segment<N>,
    ) -> Result<(), Diverged> {
        self.weigh(task, segment);
        let mut column = 0;
        for n in 0..self.nets.len() {
            let outputs = self.nets[n].spec().outputs();
            self.slopes.clear();
            match n {
                0 => self.actor_slopes(segment),
                _ => self.critic_slopes(segment, column - 2..column - 2 + outputs),
            }
            column += outputs;
            let gradient = &mut self.gradient[..self.nets[n].parameters().len()];
            gradient.fill(0.0);
            // By the segment's own weights, applied to the newest.
            segment.nets[n].backward(&mut segment.traces[n], &self.slopes, gradient, &mut []);
            if !clip_norm(gradient, self.spec.gradient_norm).is_finite() {
                return Err(Diverged);
            }
            let parameters = self.nets[n].parameters_mut();
            self.optimizers[n].step(parameters, gradient);
            let norm = parameters.iter().map(|w| w * w).sum::<f32>().sqrt();
            if !(norm <= self.spec.largest_norm) {
                return Err(Diverged);
            }
        }
        self.updates += 1;
        Ok(())
    }

    /// Averages the rewards from each step on (Eq. 1), and compares what they are worth with what was expected.
    fn weigh(&mut self, task: &impl Task<N>, segment: &Segment<N>) {
        self.returns.clear();
        self.advantages.clear();
        let mut next = segment.continuation.unwrap_or(segment.units);
        for step in segment.steps.iter().rev() {
            let gamma = task.gamma(step.round, &step.values);
            for (average, reward) in next.iter_mut().zip(&step.rewards) {
                *average = self.spec.weighting.fold(gamma, *reward, *average);
            }
            self.returns.push(next);
            let advantage = task.utility(&next) - task.utility(&step.values);
            self.advantages.push(advantage);
        }
        self.returns.reverse();
        self.advantages.reverse();
        self.moments
            .scale(&mut self.advantages, &self.spec);
    }

    fn actor_slopes(&mut self, segment: &Segment<N>) {
        let PalSpec {
            initial_deviation,
            least_deviation,
            entropy,
            ..
        } = self.spec;
        let share = 1.0 / segment.steps.len() as f32;
        for (step, advantage) in segment.steps.iter().zip(&self.advantages) {
            let outputs = [step.outputs[0], step.outputs[1]];
            let policy = Gaussian::of(outputs, initial_deviation, least_deviation);
            let slopes = policy.slopes(
                outputs,
                initial_deviation,
                least_deviation,
                step.action,
                *advantage,
                entropy,
            );
            self.slopes.extend(slopes.map(|slope| share * slope));
        }
    }

    /// The gradient of the squared differences (Eq. 4), each in its unit.
    fn critic_slopes(&mut self, segment: &Segment<N>, rewards: std::ops::Range<usize>) {
        let share = 1.0 / segment.steps.len() as f32;
        for (step, returns) in segment.steps.iter().zip(&self.returns) {
            for n in rewards.clone() {
                let error = (step.values[n] - returns[n]) / segment.units[n];
                let slope = softplus_slope(step.outputs[2 + n]);
                self.slopes.push(share * 2.0 * error * slope);
            }
        }
    }
}

impl Moments {
    /// Counts the advantages of a segment in, then scales them.
    fn scale(&mut self, advantages: &mut [f32], spec: &PalSpec) {
        let before = self.mean();
        let kept = spec.advantage_memory;
        if kept > 0.0 {
            let count = advantages.len().max(1) as f32;
            let mean = advantages.iter().sum::<f32>() / count;
            let centre = if spec.centred { before } else { 0.0 };
            let squares = advantages.iter().map(|a| (a - centre) * (a - centre));
            let square = squares.sum::<f32>() / count;
            self.mean = kept * self.mean + (1.0 - kept) * mean;
            self.square = kept * self.square + (1.0 - kept) * square;
            self.weight = kept * self.weight + (1.0 - kept);
        }
        let scale = match kept > 0.0 && self.square > 0.0 {
            true => 1.0 / (self.square / self.weight).sqrt(),
            false => 1.0,
        };
        let centre = if spec.centred { before } else { 0.0 };
        for advantage in advantages {
            *advantage = (*advantage - centre) * scale;
            if spec.advantage_limit > 0.0 {
                *advantage = advantage.clamp(-spec.advantage_limit, spec.advantage_limit);
            }
        }
    }

    fn mean(&self) -> f32 {
        if self.weight > 0.0 { self.mean / self.weight } else { 0.0 }
    }
}
