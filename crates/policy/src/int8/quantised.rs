//! A network in whole numbers that takes an observation in floating point, as the agent in user
//! space has it.

use headway_fixed::{Int8, MlpValues};

use crate::{FeatureUse, ObservationSpec};

/// A policy in whole numbers, and how observations become its inputs.
#[derive(Clone, Debug)]
pub struct Quantised {
    policy: Int8,
    features: Vec<FeatureUse>,
}

impl Quantised {
    /// `observation` is the one from which [`compile`](super::compile) made `policy`.
    pub fn new(policy: Int8, observation: &ObservationSpec) -> Quantised {
        Quantised {
            policy,
            features: observation.features.clone(),
        }
    }

    /// The policy in the format of the kernel's program.
    pub fn policy(&self) -> &Int8 {
        &self.policy
    }

    /// The network's output for normalised features.
    pub(crate) fn output(&self, observation: &[f32]) -> f32 {
        let mut values = MlpValues::default();
        let uses = self.features.iter().cycle();
        for (value, (seen, used)) in values.inputs.iter_mut().zip(observation.iter().zip(uses)) {
            *value = input((*seen).into(), used);
        }
        (self.policy.net.run(&mut values) as f64 / 65536.0) as f32
    }
}

/// The input, 0 to 255, for a normalised feature: its place between the limits of its clip, with a
/// half rounded up.
pub(super) fn input(normalised: f64, used: &FeatureUse) -> u8 {
    let [low, high] = used.clip;
    ((normalised - low) * 255.0 / (high - low) + 0.5).floor() as u8
}
