//! The distribution from which actions are drawn, and the critics' positive outputs.

use crate::nn::sigmoid;

/// A normal distribution, which the actor's outputs describe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gaussian {
    /// Its mean.
    pub mean: f32,
    /// Its standard deviation, above 0.
    pub deviation: f32,
}

impl Gaussian {
    /// The distribution for the actor's two outputs: the mean, and the softplus of the second
    /// output above the minimum standard deviation. An output of 0 gives the standard deviation
    /// `initial`.
    pub(super) fn of(outputs: [f32; 2], initial: f32, least: f32) -> Gaussian {
        Gaussian {
            mean: outputs[0],
            deviation: least + (initial - least) * softplus_from_one(outputs[1]),
        }
    }

    /// The gradient of `-advantage log pi(action) - entropy H` (Eq. 6) by the actor's two outputs.
    pub(super) fn slopes(
        &self,
        outputs: [f32; 2],
        initial: f32,
        least: f32,
        action: f32,
        advantage: f32,
        entropy: f32,
    ) -> [f32; 2] {
        let z = (action - self.mean) / self.deviation;
        let by_mean = -advantage * z / self.deviation;
        let by_deviation = (-advantage * (z * z - 1.0) - entropy) / self.deviation;
        [
            by_mean,
            by_deviation * (initial - least) * softplus_slope(outputs[1]),
        ]
    }
}

/// softplus(x + ln(e - 1)): positive, and 1 at 0.
#[inline]
pub(super) fn softplus_from_one(x: f32) -> f32 {
    let x = x + SHIFT;
    if x > 20.0 {
        x
    } else {
        libm::log1pf(libm::expf(x))
    }
}

/// The derivative of the function above.
#[inline]
pub(super) fn softplus_slope(x: f32) -> f32 {
    sigmoid(x + SHIFT)
}

/// ln(e - 1)
const SHIFT: f32 = 0.541_324_85;
