//! A dense layer: an activation of weighted sums.

use pulp::Simd;

use super::Activation;
use super::affine::Affine;
use super::layer::Back;

#[derive(Clone, Copy, Debug)]
pub(super) struct Dense {
    pub sums: Affine,
    pub activation: Activation,
}

impl Dense {
    /// Writes the outputs to `record`.
    #[inline(always)]
    pub fn forward<S: Simd>(&self, simd: S, parameters: &[f32], x: &[f32], record: &mut [f32]) {
        self.sums.forward(simd, parameters, x, record);
        self.activation.apply(record);
    }

    #[inline(always)]
    pub fn backward(&self, back: Back<'_>) {
        let Back {
            parameters,
            x,
            record,
            dy,
            gradient,
            dx,
            ..
        } = back;
        for (dy, y) in dy.iter_mut().zip(record) {
            *dy *= self.activation.slope(*y);
        }
        self.sums.backward(parameters, x, dy, gradient, dx);
    }
}
