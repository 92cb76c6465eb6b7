//! Weighted sums, and their gradients.

/// `y = W x + b`. The weights of one input to all the outputs lie side by side, in the network's one array of
/// parameters: so many outputs are summed at once, each in the order of its inputs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Affine {
    pub inputs: usize,
    pub outputs: usize,
    /// Where its weights begin.
    pub weight: usize,
    /// Where its biases begin.
    pub bias: usize,
}

/// So many inputs are added to an output while it is in a register.
const ROWS: usize = 8;

impl Affine {
    #[inline(always)]
    fn weights<'a>(&self, parameters: &'a [f32]) -> &'a [f32] {
        &parameters[self.weight..][..self.inputs * self.outputs]
    }

    /// Each output: its bias, then its weighted inputs in their order.
    #[inline(always)]
    pub fn forward(&self, parameters: &[f32], x: &[f32], y: &mut [f32]) {
        let n = self.outputs;
        let y = &mut y[..n];
        y.copy_from_slice(&parameters[self.bias..][..n]);
        let (blocks, last) = x.as_chunks::<ROWS>();
        let (weights, last_weights) = self.weights(parameters).split_at(blocks.len() * ROWS * n);
        for (x, weights) in blocks.iter().zip(weights.chunks_exact(ROWS * n)) {
            let rows: [&[f32]; ROWS] = std::array::from_fn(|k| &weights[k * n..][..n]);
            for i in 0..n {
                let mut sum = y[i];
                for k in 0..ROWS {
                    sum += x[k] * rows[k][i];
                }
                y[i] = sum;
            }
        }
        for (x, row) in last.iter().zip(last_weights.chunks_exact(n)) {
            add_scaled(y, *x, row);
        }
    }

    /// Adds to `gradient` what `dy`, the gradient of the outputs, makes of the parameters'; and to `dx` the inputs'.
    #[inline(always)]
    pub fn backward(
        &self,
        parameters: &[f32],
        x: &[f32],
        dy: &[f32],
        gradient: &mut [f32],
        dx: &mut [f32],
    ) {
        let (n, size) = (self.outputs, self.inputs * self.outputs);
        add_scaled(&mut gradient[self.bias..][..n], 1.0, dy);
        let rows = gradient[self.weight..][..size].chunks_exact_mut(n);
        for (x, row) in x.iter().zip(rows) {
            add_scaled(row, *x, dy);
        }
        for (dx, row) in dx.iter_mut().zip(self.weights(parameters).chunks_exact(n)) {
            *dx += dot(row, dy);
        }
    }
}

/// `y += a x`
#[inline(always)]
fn add_scaled(y: &mut [f32], a: f32, x: &[f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

/// The sum of the products, in 16 lanes whatever the registers hold.
#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0; 16];
    let (a, a_last) = a.as_chunks::<16>();
    let (b, b_last) = b.as_chunks::<16>();
    for (a, b) in a.iter().zip(b) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += a * b;
        }
    }
    for (lane, (a, b)) in lanes.iter_mut().zip(a_last.iter().zip(b_last)) {
        *lane += a * b;
    }
    lanes.iter().sum()
}
