//! The learned weights of the actor and the critics.

use headway_cc::Stream;
use serde::{Deserialize, Serialize};

use super::gaussian::{Gaussian, softplus_slope};
use super::nets::{self, MAX_OUTPUTS};
use super::segment::Segment;
use super::{Centre, PalSpec, Task};
use crate::nn::{NetError, Network, Optimizer, clip_norm};

/// The weights with which agents act, and their optimisers' state.
#[derive(Clone, Debug)]
pub struct Weights<const N: usize> {
    spec: PalSpec,
    pub(super) nets: Vec<Network>,
    pub(super) optimizers: Vec<Optimizer>,
    pub(super) moments: Moments,
    pub(super) updates: u64,
    // Work space.
    gradient: Vec<f32>,
    slopes: Vec<f32>,
    returns: Vec<[f32; N]>,
    advantages: Vec<f32>,
}

/// Recent mean and mean square of the advantages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Moments {
    mean: f32,
    square: f32,
    /// The weight of both, which grows up to 1.
    weight: f32,
}

/// The weights, or a gradient, were not finite or too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the weights have diverged")]
pub struct Diverged;

impl<const N: usize> Weights<N> {
    /// Random weights, for observations of `inputs` numbers. `groups` says how many rewards each
    /// critic predicts, in their order.
    ///
    /// # Errors
    /// [`NetError`], one line: a setting is out of range, or the groups do not have `N` rewards in
    /// all.
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
        let nets = (nets::specs(&spec, inputs, groups).iter())
            .map(|net| nets::random(net, stream))
            .collect::<Result<_, _>>()?;
        Weights::of(spec, nets)
    }

    /// The weights of these networks, which have learned nothing yet.
    pub(super) fn of(spec: PalSpec, nets: Vec<Network>) -> Result<Weights<N>, NetError> {
        let optimizer = |(n, net): (usize, &Network)| {
            let one = match n {
                0 => spec.actor_optimizer,
                _ => spec.critic_optimizer,
            };
            Optimizer::new(one, net.parameters().len())
        };
        let optimizers = nets.iter().enumerate().map(optimizer);
        let widest = nets.iter().map(|net| net.parameters().len()).max();
        Ok(Weights {
            optimizers: optimizers.collect::<Result<_, _>>()?,
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

    /// The settings of the learning.
    pub fn spec(&self) -> &PalSpec {
        &self.spec
    }

    /// The networks: the actor, then the critics.
    pub fn networks(&self) -> &[Network] {
        &self.nets
    }

    /// The number of gradients that were applied.
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
            // The gradient is computed with the segment's own weights, and applied to the newest.
            segment.nets[n].backward(&mut segment.traces[n], &self.slopes, gradient, &mut []);
            if !clip_norm(gradient, self.spec.gradient_norm).is_finite() {
                return Err(Diverged);
            }
            let parameters = self.nets[n].parameters_mut();
            self.optimizers[n].step(parameters, gradient);
            let norm = parameters.iter().map(|w| w * w).sum::<f32>().sqrt();
            if norm.is_nan() || norm > self.spec.largest_norm {
                return Err(Diverged);
            }
        }
        self.updates += 1;
        Ok(())
    }

    /// Averages the rewards from each step on (Eq. 1), and compares their utility with the
    /// prediction.
    fn weigh(&mut self, task: &impl Task<N>, segment: &Segment<N>) {
        self.returns.clear();
        self.advantages.clear();
        let mut next = segment.continuation.expect("it is over");
        for step in segment.steps.iter().rev() {
            let gamma = task.gamma(step.window, &step.values);
            for (average, reward) in next.iter_mut().zip(&step.rewards) {
                *average = self.spec.weighting.fold(gamma, *reward, *average);
            }
            self.returns.push(next);
            let advantage = task.utility(&next) - task.utility(&step.values);
            self.advantages.push(advantage);
        }
        self.returns.reverse();
        self.advantages.reverse();
        self.moments.scale(&mut self.advantages, &self.spec);
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

    /// The gradient of the squared differences (Eq. 4), each in the reward's unit.
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
    /// Centres and scales the advantages of a segment, and adds them to the recent mean and square.
    fn scale(&mut self, advantages: &mut [f32], spec: &PalSpec) {
        let share = 1.0 / advantages.len().max(1) as f32;
        let mean = share * advantages.iter().sum::<f32>();
        let centre = match spec.centre {
            Centre::Nothing => 0.0,
            Centre::Late => self.mean(),
            Centre::Segment => mean,
        };
        advantages.iter_mut().for_each(|a| *a -= centre);
        let kept = spec.advantage_memory;
        if kept > 0.0 {
            let square = share * advantages.iter().map(|a| a * a).sum::<f32>();
            let keep = |sum: f32, new: f32| kept * sum + (1.0 - kept) * new;
            self.mean = keep(self.mean, mean);
            self.square = keep(self.square, square);
            self.weight = keep(self.weight, 1.0);
            if self.square > 0.0 {
                let scale = (self.weight / self.square).sqrt();
                advantages.iter_mut().for_each(|a| *a *= scale);
            }
        }
    }

    fn mean(&self) -> f32 {
        match self.weight > 0.0 {
            true => self.mean / self.weight,
            false => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::super::nets::{Memories, values};
    use super::super::segment::Step;
    use super::*;
    use crate::nn::{NetSpec, OptimizerSpec};
    use crate::schemes::rax::Throughput;

    /// The format of the file of scripts/pal_fixtures.py.
    #[derive(Deserialize)]
    struct Fixtures {
        alpha: f32,
        entropy: f32,
        initial: f32,
        least: f32,
        units: [f32; 3],
        windows: Vec<f32>,
        earlier: Vec<f32>,
        observations: Vec<f32>,
        actions: Vec<f32>,
        rewards: Vec<f32>,
        continuation: [f32; 3],
        nets: Vec<Net>,
    }

    #[derive(Deserialize)]
    struct Net {
        spec: NetSpec,
        tensors: BTreeMap<String, Vec<f32>>,
        gradient: BTreeMap<String, Vec<f32>>,
    }

    /// Steps of size 1 from the fixture's networks, so that parameters move by the gradient.
    fn weights(fixtures: &Fixtures) -> Weights<3> {
        let plain = OptimizerSpec::Sgd {
            lr: 1.0,
            momentum: 0.0,
        };
        let spec = PalSpec {
            actor_optimizer: plain,
            critic_optimizer: plain,
            entropy: fixtures.entropy,
            initial_deviation: fixtures.initial,
            least_deviation: fixtures.least,
            gradient_norm: 1e6,
            advantage_memory: 0.0,
            centre: Centre::Nothing,
            ..PalSpec::default()
        };
        let network = |net: &Net| {
            let network = Network::new(&net.spec, &mut |name, _| Ok(net.tensors[name].clone()));
            network.expect("a good network")
        };
        Weights::of(spec, fixtures.nets.iter().map(network).collect()).expect("settings in range")
    }

    /// Eq. 1, 4, 5, 6 and 8, through time.
    #[test]
    fn gradients_match_pytorchs_autograd_within_1e_4() {
        let text = include_str!("../../tests/fixtures/pal.json");
        let fixtures: Fixtures = serde_json::from_str(text).expect("the file is as written");
        let mut weights = weights(&fixtures);
        let before: Vec<Network> = weights.nets.clone();
        let mut segment = Segment::<3>::new(&weights.nets);
        segment.begin(0, &weights.nets, fixtures.units);
        let mut memories = Memories::of(&weights.nets);
        // The carried hidden state contains what came before, and no gradient does.
        let mut earlier = Segment::<3>::new(&weights.nets);
        earlier.begin(0, &weights.nets, fixtures.units);
        for seen in fixtures.earlier.chunks(8) {
            earlier.outputs(&mut memories, seen);
        }
        for (step, seen) in fixtures.observations.chunks(8).enumerate() {
            let outputs = segment.outputs(&mut memories, seen);
            let step = Step {
                outputs,
                values: values(&outputs, &fixtures.units),
                action: fixtures.actions[step],
                window: fixtures.windows[step],
                rewards: std::array::from_fn(|n| fixtures.rewards[3 * step + n]),
            };
            segment.add(step, 1.0, f32::INFINITY);
        }
        segment.continuation = Some(fixtures.continuation);
        let task = Throughput {
            alpha: fixtures.alpha,
        };
        weights.learn(&task, &mut segment).expect("finite");
        for ((net, before), after) in fixtures.nets.iter().zip(&before).zip(&weights.nets) {
            let moved: Vec<f32> = (before.parameters().iter().zip(after.parameters()))
                .map(|(before, after)| before - after)
                .collect();
            for (name, _, ours) in before.tensors(&moved) {
                let theirs = &net.gradient[&name];
                let largest = theirs.iter().fold(1.0_f32, |most, g| most.max(g.abs()));
                let off = (ours.iter().zip(theirs)).map(|(a, b)| (a - b).abs());
                let off = off.fold(0.0, f32::max) / largest;
                assert!(off < 1e-4, "{name}: off by {off:e}");
            }
            assert!(moved.iter().any(|g| g.abs() > 1e-2), "there is a gradient");
        }
    }
}
