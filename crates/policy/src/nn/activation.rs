//! What dense layers apply to their sums. It uses plain operations only, so that the bits are the
//! same everywhere and many numbers can be computed at once.

use super::Activation;

/// Adding this constant to a number rounds the number to a whole one, which the lowest bits of the
/// sum then hold.
const ROUND: f32 = 12_582_912.0;
/// ln 2 in two parts; the first has so few bits that its multiples up to 1000 are exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// Splits e^x - 1 = 2^n (1 + p) - 1, and returns 2^n and p. Here x = n ln 2 + r with |r| <= ln 2 /
/// 2, and p = e^r - 1 by Taylor's series, whose first omitted term is below 6e-9. |x| must be at
/// most 80.
#[inline(always)]
fn split_exp(x: f32) -> (f32, f32) {
    let sum = x * std::f32::consts::LOG2_E + ROUND;
    let n = sum - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let p = 1.0 / 5040.0;
    let p = p * r + 1.0 / 720.0;
    let p = p * r + 1.0 / 120.0;
    let p = p * r + 1.0 / 24.0;
    let p = p * r + 1.0 / 6.0;
    let p = p * r + 1.0 / 2.0;
    let power = f32::from_bits((sum.to_bits() << 23).wrapping_add(1.0_f32.to_bits()));
    (power, r + r * r * p)
}

/// The hyperbolic tangent, with a relative error of at most 2e-7.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    // Beyond 9.02 it rounds to 1.
    let (power, p) = split_exp(2.0 * x.clamp(-9.02, 9.02));
    let e = power * p + (power - 1.0);
    e / (e + 2.0)
}

/// The logistic function, 1 / (1 + e^-x), with an error of at most 2e-7.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    let (power, p) = split_exp((-x).clamp(-80.0, 80.0));
    1.0 / (1.0 + (power * p + power))
}

/// PyTorch's default slope below zero.
const LEAK: f32 = 0.01;

impl Activation {
    /// Applies the activation to each number. It does not use `max`, which may return either of two
    /// zeros and drops NaN; this code keeps NaN, as PyTorch does.
    #[inline(always)]
    pub(super) fn apply(self, values: &mut [f32]) {
        let relu = |v: f32, below: f32| if v <= 0.0 { below } else { v };
        match self {
            Activation::Identity => {}
            Activation::Relu => values.iter_mut().for_each(|v| *v = relu(*v, 0.0)),
            Activation::LeakyRelu => values.iter_mut().for_each(|v| *v = relu(*v, LEAK * *v)),
            Activation::Tanh => values.iter_mut().for_each(|v| *v = tanh(*v)),
            Activation::Sigmoid => values.iter_mut().for_each(|v| *v = sigmoid(*v)),
        }
    }

    /// The derivative at a point where the activation's value is `y`.
    #[inline(always)]
    pub(super) fn slope(self, y: f32) -> f32 {
        match self {
            Activation::Identity => 1.0,
            Activation::Relu => f32::from(y > 0.0),
            Activation::LeakyRelu if y > 0.0 => 1.0,
            Activation::LeakyRelu => LEAK,
            Activation::Tanh => 1.0 - y * y,
            Activation::Sigmoid => y * (1.0 - y),
        }
    }
}
