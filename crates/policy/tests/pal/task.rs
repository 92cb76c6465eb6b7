//! The task that the agents of these tests learn.

use headway_cc::Stream;
use headway_policy::nn::OptimizerSpec;
use headway_policy::pal::{Agent, Centre, PalSpec, Task, Weights};

/// A task with one reward, which is its own utility.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

pub const GAMMA: f32 = 0.3;

impl Task<1> for Plain {
    fn utility(&self, averages: &[f32; 1]) -> f32 {
        averages[0]
    }

    fn gamma(&self, _: f32, _: &[f32; 1]) -> f32 {
        GAMMA
    }
}

/// Settings as in the paper: advantages are neither scaled nor centred, and gradient steps are
/// plain.
pub fn plain(steps: usize) -> PalSpec {
    let sgd = OptimizerSpec::Sgd {
        lr: 0.1,
        momentum: 0.0,
    };
    PalSpec {
        actor_units: 4,
        critic_units: 3,
        actor_optimizer: sgd,
        critic_optimizer: sgd,
        entropy: 0.02,
        action_scale: 1.0,
        initial_deviation: 0.6,
        least_deviation: 0.05,
        gradient_norm: 1e6,
        advantage_memory: 0.0,
        centre: Centre::Nothing,
        shortest: steps,
        longest: steps,
        most_awaited: 16,
        ..PalSpec::default()
    }
}

pub fn weights(spec: PalSpec) -> Weights<1> {
    Weights::random(spec, 2, &[1], &mut Stream::new(7, "weights")).expect("settings in range")
}

pub fn agent(weights: &Weights<1>) -> Agent<Plain, 1> {
    Agent::new(Plain, weights, Stream::new(7, "actions"))
}

/// The observation at a step, given the last action.
pub fn observation(step: usize, action: f32) -> [f32; 2] {
    [libm::sinf(step as f32 * 0.7), action]
}

/// The reward; the best action equals the first number of the observation.
pub fn reward(observation: [f32; 2], action: f32) -> f32 {
    1.0 - (action - observation[0]).powi(2)
}

/// All weights, in the order of their tensors.
pub fn numbers(weights: &Weights<1>) -> Vec<f32> {
    let nets = weights.networks().iter();
    nets.flat_map(|net| net.tensors(net.parameters()))
        .flat_map(|(_, _, values)| values)
        .collect()
}
