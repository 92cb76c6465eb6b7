//! Long short-term memory, by PyTorch's formulas:
//!
//! ```text
//! i, f, o = sigmoid(W_i. x + b_i. + W_h. h + b_h.)
//! g  = tanh(W_ig x + b_ig + W_hg h + b_hg)
//! c' = f c + i g
//! h' = o tanh(c')
//! ```

use pulp::Simd;

use super::activation::{sigmoid, tanh};
use super::affine::Affine;
use super::layer::Back;

#[derive(Clone, Copy, Debug)]
pub(super) struct Lstm {
    pub units: usize,
    /// The gates' part of the inputs.
    pub input: Affine,
    /// The gates' part of the last outputs.
    pub hidden: Affine,
}

/// How many numbers of each unit a step's record holds: h, c; i, f, g, o; four sums; tanh(c'); h'.
pub(super) const RECORD: usize = 12;
/// How many numbers of work space the backward pass needs for each unit.
pub(super) const WORK: usize = 4;

impl Lstm {
    /// `memory` is h and c before, h' and c' after the step. The record ends with the outputs.
    #[inline(always)]
    pub fn forward<S: Simd>(
        &self,
        simd: S,
        parameters: &[f32],
        x: &[f32],
        memory: &mut [f32],
        record: &mut [f32],
    ) {
        let u = self.units;
        let (before, rest) = record.split_at_mut(2 * u);
        let (gates, rest) = rest.split_at_mut(4 * u);
        let (from_hidden, rest) = rest.split_at_mut(4 * u);
        let (tanh_c, outputs) = rest.split_at_mut(u);
        before.copy_from_slice(memory);
        self.input.forward(simd, parameters, x, gates);
        self.hidden
            .forward(simd, parameters, &before[..u], from_hidden);

        for (gate, sum) in gates.iter_mut().zip(from_hidden) {
            *gate += *sum;
        }
        let (i_and_f, g_and_o) = gates.split_at_mut(2 * u);
        let (g, o) = g_and_o.split_at_mut(u);
        i_and_f.iter_mut().for_each(|v| *v = sigmoid(*v));
        g.iter_mut().for_each(|v| *v = tanh(*v));
        o.iter_mut().for_each(|v| *v = sigmoid(*v));
        let (i, f) = i_and_f.split_at(u);
        let (h, c) = memory.split_at_mut(u);
        for k in 0..u {
            c[k] = f[k] * c[k] + i[k] * g[k];
            tanh_c[k] = tanh(c[k]);
            outputs[k] = o[k] * tanh_c[k];
        }
        h.copy_from_slice(outputs);
    }

    #[inline(always)]
    pub fn backward(&self, back: Back<'_>) {
        let Back {
            parameters,
            x,
            record,
            dy,
            dmemory,
            work,
            gradient,
            dx,
        } = back;
        let u = self.units;
        let part = |n: usize| &record[n * u..][..u];
        let (h, c) = (part(0), part(1));
        let (i, f, g, o, tanh_c) = (part(2), part(3), part(4), part(5), part(10));
        let (dh, dc) = dmemory.split_at_mut(u);
        let d_gates = &mut work[..WORK * u];
        for k in 0..u {
            let dh = dy[k] + dh[k];
            let dc_after = dc[k] + dh * o[k] * (1.0 - tanh_c[k] * tanh_c[k]);
            d_gates[k] = dc_after * g[k] * i[k] * (1.0 - i[k]);
            d_gates[u + k] = dc_after * c[k] * f[k] * (1.0 - f[k]);
            d_gates[2 * u + k] = dc_after * i[k] * (1.0 - g[k] * g[k]);
            d_gates[3 * u + k] = dh * tanh_c[k] * o[k] * (1.0 - o[k]);
            dc[k] = dc_after * f[k];
        }
        dh.fill(0.0);
        self.input.backward(parameters, x, d_gates, gradient, dx);
        self.hidden.backward(parameters, h, d_gates, gradient, dh);
    }
}
