//! State masking (Owl §IV-A): what is known only at times is weighed by how much of it is known.
//!
//! ```text
//! y_j = x_j sigmoid(w_j known + b_j)   if known > 0, else 0
//! ```
//!
//! for each masked feature j of each interval; all other inputs pass as they are. One network so
//! serves any share of known switches, none among them.

use serde::{Deserialize, Serialize};

use super::NetError;
use super::activation::sigmoid;
use super::layer::Back;

/// Which inputs are weighed before the first layer. In a model's card:
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
    /// How many numbers each interval has; the inputs are intervals, one after another.
    pub features: usize,
    /// Which of them is the share that is known: where it is not above zero, those masked are
    /// padding.
    pub known: usize,
    /// Which of them are weighed.
    pub masked: Vec<usize>,
}

impl MaskSpec {
    /// Checks that it fits a network of this number of inputs.
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

/// The layer. Its parameters: a weight for each masked feature, then a bias for each.
#[derive(Clone, Debug)]
pub(super) struct Mask {
    spec: MaskSpec,
    pub inputs: usize,
    start: usize,
}

impl Mask {
    /// Its parameters come at the `end` of those before.
    pub fn new(spec: &MaskSpec, inputs: usize, end: &mut usize) -> Mask {
        let start = *end;
        *end += 2 * spec.masked.len();
        Mask {
            spec: spec.clone(),
            inputs,
            start,
        }
    }

    /// Where its parameters lie.
    pub fn places(&self) -> std::ops::Range<usize> {
        self.start..self.start + 2 * self.spec.masked.len()
    }

    /// `record` becomes the weighed inputs.
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
