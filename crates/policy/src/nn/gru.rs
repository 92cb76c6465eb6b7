//! Gated recurrent units, by PyTorch's formulas:
//!
//! ```text
//! r  = sigmoid(W_ir x + b_ir + W_hr h + b_hr)
//! z  = sigmoid(W_iz x + b_iz + W_hz h + b_hz)
//! n  = tanh(W_in x + b_in + r q),  q = W_hn h + b_hn
//! h' = (1 - z) n + z h
//! ```

use pulp::Simd;

use super::activation::{sigmoid, tanh};
use super::affine::Affine;
use super::layer::Back;

#[derive(Clone, Copy, Debug)]
pub(super) struct Gru {
    pub units: usize,
    /// The gates' part of the inputs.
    pub input: Affine,
    /// The gates' part of the last outputs.
    pub hidden: Affine,
}

/// How many numbers of each unit a step's record holds: h; r, z, n; two sums, q; h'.
pub(super) const RECORD: usize = 8;
/// How many numbers of work space the backward pass needs for each unit.
pub(super) const WORK: usize = 6;

impl Gru {
    /// `memory` is h before and h' after the step. The record ends with the outputs.
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
        let (h, rest) = record.split_at_mut(u);
        let (gates, rest) = rest.split_at_mut(3 * u);
        let (from_hidden, outputs) = rest.split_at_mut(3 * u);
        h.copy_from_slice(memory);
        self.input.forward(simd, parameters, x, gates);
        self.hidden.forward(simd, parameters, h, from_hidden);

        let (r_and_z, n) = gates.split_at_mut(2 * u);
        let (sums, q) = from_hidden.split_at(2 * u);
        for (gate, sum) in r_and_z.iter_mut().zip(sums) {
            *gate = sigmoid(*gate + sum);
        }
        let (r, z) = r_and_z.split_at(u);
        for i in 0..u {
            n[i] = tanh(n[i] + r[i] * q[i]);
            outputs[i] = (1.0 - z[i]) * n[i] + z[i] * h[i];
        }
        memory.copy_from_slice(outputs);
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
        let (h, r, z, n, q) = (part(0), part(1), part(2), part(3), part(6));
        let (d_input, d_hidden) = work[..WORK * u].split_at_mut(3 * u);
        for i in 0..u {
            let dh = dy[i] + dmemory[i];
            let dn = dh * (1.0 - z[i]) * (1.0 - n[i] * n[i]);
            let dr = dn * q[i] * r[i] * (1.0 - r[i]);
            let dz = dh * (h[i] - n[i]) * z[i] * (1.0 - z[i]);
            (d_input[i], d_input[u + i], d_input[2 * u + i]) = (dr, dz, dn);
            (d_hidden[i], d_hidden[u + i], d_hidden[2 * u + i]) = (dr, dz, dn * r[i]);
            dmemory[i] = dh * z[i];
        }
        self.input.backward(parameters, x, d_input, gradient, dx);
        self.hidden
            .backward(parameters, h, d_hidden, gradient, dmemory);
    }
}
