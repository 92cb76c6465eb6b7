//! State masking (Owl §IV-A): features that are not always known are scaled by how much of the
//! network is known.
//!
//! ```text
//! y_j = x_j sigmoid(w_j known + b_j)   if known > 0, else 0
//! ```
//!
//! This holds for each masked feature j of each interval. All other inputs stay as they are. So one
//! network serves any known share, also 0.

use serde::{Deserialize, Serialize};

use super::NetError;
use super::activation::sigmoid;
use super::layer::Back;

/// The inputs that are scaled before the first layer. In a model's card:
///
/// ```toml
/// [net.mask]
/// features = 12
/// known = 11
/// masked = [9, 10]
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaskSpec {
    /// The number of features of an interval. The inputs are several intervals in turn.
    pub features: usize,
    /// The index of the known share. Where it is not above zero, the masked features are padding.
    pub known: usize,
    /// The indices of the masked features.
    pub masked: Vec<usize>,
}

impl MaskSpec {
    /// Checks that the mask fits a network with this number of inputs.
    pub(super) fn check(&self, inputs: usize) -> Result<(), NetError> {
        let MaskSpec {
            features,
            known,
            ref masked,
        } = *self;
        let fail = |text: String| Err(NetError(format!("net.mask: {text}")));
        if features == 0 || !inputs.is_multiple_of(features) {
            return fail(format!(
                "features is {features}, must divide the {inputs} inputs into intervals"
            ));
        }
        if known >= features {
            return fail(format!(
                "known is {known}, must be an index below {features}, the number of features"
            ));
        }
        let is_sound =
            |(n, &at): (usize, &usize)| at < features && at != known && !masked[..n].contains(&at);
        match !masked.is_empty() && masked.iter().enumerate().all(is_sound) {
            true => Ok(()),
            false => fail(format!(
                "masked is {masked:?}, must be one or more indices below {features}, each once and not known's"
            )),
        }
    }
}

/// The layer. Its parameters are a weight for each masked feature, then a bias for each.
#[derive(Clone, Debug)]
pub(super) struct Mask {
    spec: MaskSpec,
    pub inputs: usize,
    start: usize,
}

impl Mask {
    /// Places its parameters at `end`, after those of the layers before.
    pub fn new(spec: &MaskSpec, inputs: usize, end: &mut usize) -> Mask {
        let start = *end;
        *end += 2 * spec.masked.len();
        Mask {
            spec: spec.clone(),
            inputs,
            start,
        }
    }

    /// The places of its parameters.
    pub fn places(&self) -> std::ops::Range<usize> {
        self.start..self.start + 2 * self.spec.masked.len()
    }

    /// Writes the masked inputs to `record`.
    #[inline(always)]
    pub fn forward(&self, parameters: &[f32], x: &[f32], record: &mut [f32]) {
        record.copy_from_slice(x);
        let (weights, biases) = parameters[self.places()].split_at(self.spec.masked.len());
        for interval in record.chunks_exact_mut(self.spec.features) {
            let known = interval[self.spec.known];
            for ((at, w), b) in self.spec.masked.iter().zip(weights).zip(biases) {
                interval[*at] *= match known > 0.0 {
                    true => sigmoid(w * known + b),
                    false => 0.0,
                };
            }
        }
    }

    #[inline(always)]
    pub fn backward(&self, back: Back<'_>) {
        let Back {
            parameters,
            x,
            dy,
            gradient,
            dx,
            ..
        } = back;
        let MaskSpec {
            features,
            known,
            ref masked,
        } = self.spec;
        let (weights, biases) = parameters[self.places()].split_at(masked.len());
        let (dweights, dbiases) = gradient[self.places()].split_at_mut(masked.len());
        let intervals = x.chunks_exact(features).zip(dy.chunks_exact_mut(features));
        for ((x, dy), dx) in intervals.zip(dx.chunks_exact_mut(features)) {
            for (j, &at) in masked.iter().enumerate() {
                let dy = std::mem::take(&mut dy[at]);
                if x[known] > 0.0 {
                    let share = sigmoid(weights[j] * x[known] + biases[j]);
                    let dsum = dy * x[at] * share * (1.0 - share);
                    dweights[j] += dsum * x[known];
                    dbiases[j] += dsum;
                    dx[known] += dsum * weights[j];
                    dx[at] += dy * share;
                }
            }
            for (dx, dy) in dx.iter_mut().zip(dy) {
                *dx += *dy;
            }
        }
    }
}
