//! Weighted sums, and their gradients.

use pulp::{Scalar, Simd};

/// The number of outputs that are summed at the same time, in registers. For Owl's network 16 and
/// 64 are slower.
const PANEL: usize = 32;

type Panel = [f32; PANEL];

/// `y = W x + b`. The network's one array holds its parameters, biases and weights in panels of 32
/// outputs, with the last panel filled up with zeros. In each panel of weights, the 32 weights of
/// the first input come first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Affine {
    pub inputs: usize,
    pub outputs: usize,
    /// Where its parameters begin: first the biases, then the weights.
    start: usize,
}

impl Affine {
    /// Places its parameters at `end`, after those of the layers before.
    pub fn new(inputs: usize, outputs: usize, end: &mut usize) -> Affine {
        let start = *end;
        *end += (1 + inputs) * outputs.next_multiple_of(PANEL);
        Affine {
            inputs,
            outputs,
            start,
        }
    }

    /// The places of its biases.
    pub fn biases(&self) -> impl Iterator<Item = usize> {
        self.start..self.start + self.outputs
    }

    /// The places of its weights, with those of the first output first.
    pub fn weights(self) -> impl Iterator<Item = usize> {
        let start = self.start + self.outputs.next_multiple_of(PANEL);
        (0..self.outputs).flat_map(move |output| {
            let first = start + output / PANEL * PANEL * self.inputs + output % PANEL;
            (0..self.inputs).map(move |input| first + input * PANEL)
        })
    }

    /// The range of its parameters, and its number of panels.
    #[inline(always)]
    fn extent(&self) -> (std::ops::Range<usize>, usize) {
        let panels = self.outputs.div_ceil(PANEL);
        (
            self.start..self.start + (1 + self.inputs) * panels * PANEL,
            panels,
        )
    }

    /// Computes each output: its bias, then its weighted inputs in their order.
    #[inline(always)]
    pub fn forward<S: Simd>(&self, simd: S, parameters: &[f32], x: &[f32], y: &mut [f32]) {
        let (mine, panels) = self.extent();
        let (biases, weights) = parameters[mine].as_chunks::<PANEL>().0.split_at(panels);
        let weights = weights.chunks_exact(self.inputs);
        for ((y, bias), weights) in y.chunks_mut(PANEL).zip(biases).zip(weights) {
            let sums = match PANEL / S::F32_LANES {
                2 => panel_sums::<S, 2>(simd, bias, weights, x),
                4 => panel_sums::<S, 4>(simd, bias, weights, x),
                8 => panel_sums::<S, 8>(simd, bias, weights, x),
                _ => panel_sums::<Scalar, PANEL>(Scalar, bias, weights, x),
            };
            y.copy_from_slice(&sums[..y.len()]);
        }
    }

    /// Adds the gradient of the parameters to `gradient` and that of the inputs to `dx`, from the
    /// gradient `dy` of the outputs.
    #[inline(always)]
    pub fn backward(
        &self,
        parameters: &[f32],
        x: &[f32],
        dy: &[f32],
        gradient: &mut [f32],
        dx: &mut [f32],
    ) {
        let (mine, panels) = self.extent();
        let weights = &parameters[mine.clone()].as_chunks::<PANEL>().0[panels..];
        let gradient = gradient[mine].as_chunks_mut::<PANEL>().0;
        let (dbiases, dweights) = gradient.split_at_mut(panels);
        let weights = weights.chunks_exact(self.inputs);
        let dweights = dweights.chunks_exact_mut(self.inputs);
        let panels = dy.chunks(PANEL).zip(dbiases).zip(weights.zip(dweights));
        for ((dy, dbias), (weights, dweights)) in panels {
            let mut dsums: Panel = [0.0; PANEL];
            dsums[..dy.len()].copy_from_slice(dy);
            add_scaled(dbias, 1.0, &dsums);
            for (dweights, x) in dweights.iter_mut().zip(x) {
                add_scaled(dweights, *x, &dsums);
            }
            for (dx, weights) in dx.iter_mut().zip(weights) {
                *dx += dot(weights, &dsums);
            }
        }
    }
}

/// The sums of one panel, in this number of registers.
#[inline(always)]
fn panel_sums<S: Simd, const REGISTERS: usize>(
    simd: S,
    bias: &Panel,
    weights: &[Panel],
    x: &[f32],
) -> Panel {
    let mut panel = *bias;
    let (registers, _) = S::as_mut_simd_f32s(&mut panel);
    let mut sums: [S::f32s; REGISTERS] = std::array::from_fn(|r| registers[r]);
    for (x, weights) in x.iter().zip(weights) {
        let x = simd.splat_f32s(*x);
        let (weights, _) = S::as_simd_f32s(weights);
        for (sum, weight) in sums.iter_mut().zip(weights) {
            // A fused operation would round once; this rounds twice on every machine.
            *sum = simd.add_f32s(*sum, simd.mul_f32s(x, *weight));
        }
    }
    registers.copy_from_slice(&sums);
    panel
}

/// `y += a x`
#[inline(always)]
fn add_scaled(y: &mut Panel, a: f32, x: &Panel) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

/// The sum of the terms, halving the array again and again, so that it does not depend on the
/// registers.
#[inline(always)]
fn dot(a: &Panel, b: &Panel) -> f32 {
    let mut sums: Panel = std::array::from_fn(|i| a[i] * b[i]);
    let mut width = PANEL / 2;
    while width > 0 {
        for i in 0..width {
            sums[i] += sums[i + width];
        }
        width /= 2;
    }
    sums[0]
}
