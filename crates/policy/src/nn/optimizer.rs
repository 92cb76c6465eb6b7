//! Optimisers, as `torch.optim` defines them.

use serde::{Deserialize, Serialize};

use super::NetError;

/// An optimiser and its settings. Defaults are PyTorch's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum OptimizerSpec {
    /// Stochastic gradient descent.
    Sgd {
        /// The learning rate, above 0.
        lr: f32,
        /// The share of the last step that is kept, 0 to below 1.
        #[serde(default)]
        momentum: f32,
    },
    /// Steps scaled by a moving root mean square of the gradient.
    RmsProp {
        /// The learning rate, above 0.
        lr: f32,
        /// The share of the mean square that is kept, 0 to below 1.
        #[serde(default = "rmsprop_alpha")]
        alpha: f32,
        /// A number above 0 that is added to the root.
        #[serde(default = "epsilon")]
        eps: f32,
    },
    /// Steps along a moving mean of the gradient, scaled by its root mean square.
    Adam {
        /// The learning rate, above 0.
        lr: f32,
        /// The shares of the mean and of the mean square that are kept, each from 0 to below 1.
        #[serde(default = "adam_betas")]
        betas: [f32; 2],
        /// A number above 0 that is added to the root.
        #[serde(default = "epsilon")]
        eps: f32,
    },
}

fn rmsprop_alpha() -> f32 {
    0.99
}

fn adam_betas() -> [f32; 2] {
    [0.9, 0.999]
}

fn epsilon() -> f32 {
    1e-8
}

impl OptimizerSpec {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`NetError`], one line, if one is out of range.
    pub fn check(&self) -> Result<(), NetError> {
        let (lr, kept, eps) = match *self {
            OptimizerSpec::Sgd { lr, momentum } => (lr, [momentum; 2], 1.0),
            OptimizerSpec::RmsProp { lr, alpha, eps } => (lr, [alpha; 2], eps),
            OptimizerSpec::Adam { lr, betas, eps } => (lr, betas, eps),
        };
        let fail = |text: String| Err(NetError(format!("optimizer: {text}")));
        if !(lr.is_finite() && lr > 0.0) {
            return fail(format!("lr is {lr}, must be above 0"));
        }
        if !(eps.is_finite() && eps > 0.0) {
            return fail(format!("eps is {eps}, must be above 0"));
        }
        match kept.into_iter().find(|kept| !(0.0..1.0).contains(kept)) {
            Some(kept) => fail(format!(
                "momentum, alpha and betas must be 0 to below 1, not {kept}"
            )),
            None => Ok(()),
        }
    }
}

/// An optimiser with its state. After serialisation it continues bit for bit.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Optimizer {
    spec: OptimizerSpec,
    /// SGD's velocity, Adam's mean.
    mean: Vec<f32>,
    /// The mean square.
    square: Vec<f32>,
    /// Adam's betas to the power of the number of steps.
    powers: [f64; 2],
}

/// The serialised form, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    spec: OptimizerSpec,
    mean: Vec<f32>,
    square: Vec<f32>,
    powers: [f64; 2],
}

impl TryFrom<Unchecked> for Optimizer {
    type Error = NetError;

    fn try_from(saved: Unchecked) -> Result<Optimizer, NetError> {
        saved.spec.check()?;
        let Unchecked {
            spec,
            mean,
            square,
            powers,
        } = saved;
        let numbers = || mean.iter().chain(&square);
        let is_sound = mean.len() == square.len()
            && numbers().all(|number| number.is_finite())
            && square.iter().all(|&number| number >= 0.0)
            && powers.iter().all(|power| (0.0..=1.0).contains(power));
        if !is_sound {
            return Err(NetError(
                "optimizer: its moments must be finite numbers, two for each parameter".to_owned(),
            ));
        }
        Ok(Optimizer {
            spec,
            mean,
            square,
            powers,
        })
    }
}

impl Optimizer {
    /// An optimiser for this number of parameters.
    ///
    /// # Errors
    /// [`NetError`], one line, if a setting is out of range.
    pub fn new(spec: OptimizerSpec, parameters: usize) -> Result<Optimizer, NetError> {
        spec.check()?;
        Ok(Optimizer {
            spec,
            mean: vec![0.0; parameters],
            square: vec![0.0; parameters],
            powers: [1.0; 2],
        })
    }

    /// Is `other` of the same kind, with the same settings, for as many parameters?
    pub(crate) fn fits(&self, other: &Optimizer) -> bool {
        self.spec == other.spec && self.mean.len() == other.mean.len()
    }

    /// Moves the parameters against the gradient, so that the loss decreases.
    ///
    /// # Panics
    /// If the lengths differ from the one for which it was made.
    pub fn step(&mut self, parameters: &mut [f32], gradient: &[f32]) {
        let Optimizer {
            spec,
            mean,
            square,
            powers,
        } = self;
        assert_eq!(parameters.len(), mean.len(), "number of parameters");
        assert_eq!(gradient.len(), mean.len(), "length of the gradient");
        let all = parameters
            .iter_mut()
            .zip(gradient)
            .zip(mean.iter_mut().zip(square));
        match *spec {
            OptimizerSpec::Sgd { lr, momentum } => {
                for ((p, g), (velocity, _)) in all {
                    *velocity = momentum * *velocity + g;
                    *p -= lr * *velocity;
                }
            }
            OptimizerSpec::RmsProp { lr, alpha, eps } => {
                for ((p, g), (_, square)) in all {
                    *square = alpha * *square + (1.0 - alpha) * g * g;
                    *p -= lr * g / (square.sqrt() + eps);
                }
            }
            OptimizerSpec::Adam { lr, betas, eps } => {
                for (power, beta) in powers.iter_mut().zip(betas) {
                    *power *= f64::from(beta);
                }
                let [unbias_mean, unbias_square] = powers.map(|power| 1.0 - power);
                let step = (f64::from(lr) / unbias_mean) as f32;
                let scale = unbias_square.sqrt() as f32;
                for ((p, g), (mean, square)) in all {
                    *mean += (1.0 - betas[0]) * (g - *mean);
                    *square = betas[1] * *square + (1.0 - betas[1]) * g * g;
                    *p -= step * *mean / (square.sqrt() / scale + eps);
                }
            }
        }
    }
}

/// Scales the gradient down so that its norm is at most `limit`, as
/// `torch.nn.utils.clip_grad_norm_` does. Returns the old norm. If that is not finite, do not take
/// a step.
pub fn clip_norm(gradient: &mut [f32], limit: f32) -> f32 {
    let square = |g: &f32| f64::from(*g) * f64::from(*g);
    let norm = gradient.iter().map(square).sum::<f64>().sqrt() as f32;
    let scale = limit / (norm + 1e-6);
    if scale < 1.0 {
        gradient.iter_mut().for_each(|g| *g *= scale);
    }
    norm
}
