//! A smoothing cubic spline through noisy points.
//!
//! Its nodes are evenly spaced. It minimises the sum of squared residuals plus a penalty times the
//! integral of its squared second derivative, and is straight beyond either end (the second
//! derivative is zero there). It equals ALGLIB's `spline1dfitpenalized` in another basis: with
//! B-splines the equations have seven diagonals.

/// ALGLIB's penalty is 10^rho, scaled by the ratio of data to bending of a basis function that is
/// one at a node and zero at the others. For evenly spread points, this ratio is the integral of
/// the function's square over that of its squared second derivative, per point and in units of the
/// distance of nodes.
const SCALE: f64 = 0.874_230_7 / 14.353_829_1;
/// A small ridge, so that a single point has a solution.
const RIDGE: f64 = 1e-9;
/// Unknowns further apart than this do not interact.
const BAND: usize = 3;

/// The spline: a coefficient for each node, and one beyond either end.
#[derive(Clone, Debug)]
pub struct Spline {
    first: f64,
    spacing: f64,
    coefficients: Vec<f64>,
}

/// A row of the equations: the weights of at most four unknowns from `at` on.
struct Row {
    at: usize,
    weights: [f64; BAND + 1],
}

impl Spline {
    /// Fits a spline of `nodes` (five or more) to points in the order of their abscissae. `None` if
    /// there is no point, or if all have the same abscissa.
    pub fn fit(points: &[(f64, f64)], nodes: usize, rho: f64) -> Option<Spline> {
        let (first, last) = (points.first()?.0, points.last()?.0);
        if last <= first || nodes < 5 {
            return None;
        }
        let spacing = (last - first) / (nodes - 1) as f64;
        let density = points.len() as f64 / (nodes - 1) as f64;
        let penalty = libm::pow(10.0, rho) * SCALE * density;

        let mut matrix = vec![[0.0; BAND + 1]; nodes];
        let mut right = vec![0.0; nodes];
        for &(x, y) in points {
            let row = Row::of_value((x - first) / spacing, nodes);
            row.add_square(&row, 1.0, &mut matrix);
            for (sum, weight) in right[row.at..].iter_mut().zip(row.weights) {
                *sum += weight * y;
            }
        }
        // The second derivative is linear between nodes. The integral of its square over an
        // interval from s to t is (s^2 + s t + t^2) / 3. At both ends it is zero.
        for node in 1..nodes - 1 {
            let bend = Row::of_second_derivative(node);
            bend.add_square(&bend, penalty * 2.0 / 3.0, &mut matrix);
            if node + 2 < nodes {
                let next = Row::of_second_derivative(node + 1);
                bend.add_square(&next, penalty / 6.0, &mut matrix);
                next.add_square(&bend, penalty / 6.0, &mut matrix);
            }
        }
        for row in &mut matrix {
            row[0] += RIDGE * density;
        }
        let inner = solved(matrix, right);
        let mut coefficients = Vec::with_capacity(nodes + 2);
        coefficients.push(2.0 * inner[0] - inner[1]);
        coefficients.extend_from_slice(&inner);
        coefficients.push(2.0 * inner[nodes - 1] - inner[nodes - 2]);
        Some(Spline {
            first,
            spacing,
            coefficients,
        })
    }

    /// The value at `x`.
    pub fn at(&self, x: f64) -> f64 {
        let intervals = self.coefficients.len() - 3;
        let u = (x - self.first) / self.spacing;
        let inside = u.clamp(0.0, intervals as f64);
        let k = (inside as usize).min(intervals - 1);
        let c = &self.coefficients[k..k + 4];
        let value: f64 = b_splines(inside - k as f64)
            .iter()
            .zip(c)
            .map(|(b, c)| b * c)
            .sum();
        // Beyond the ends the spline is straight.
        let slope = match inside == u {
            true => 0.0,
            false if u < 0.0 => (c[2] - c[0]) / 2.0,
            false => (c[3] - c[1]) / 2.0,
        };
        value + slope * (u - inside)
    }
}

/// The four cubic B-splines that are not zero between two nodes, at the share `t` of the way.
fn b_splines(t: f64) -> [f64; 4] {
    let s = 1.0 - t;
    [
        s * s * s / 6.0,
        (t * t * (3.0 * t - 6.0) + 4.0) / 6.0,
        (s * s * (3.0 * s - 6.0) + 4.0) / 6.0,
        t * t * t / 6.0,
    ]
}

impl Row {
    /// The value at `u` nodes from the first. The coefficient beyond an end is 2a - b of the two
    /// before it, since the second derivative is zero there.
    fn of_value(u: f64, nodes: usize) -> Row {
        let k = (u.max(0.0) as usize).min(nodes - 2);
        let [b0, b1, b2, b3] = b_splines(u - k as f64);
        match k {
            0 => Row {
                at: 0,
                weights: [b1 + 2.0 * b0, b2 - b0, b3, 0.0],
            },
            _ if k == nodes - 2 => Row {
                at: k - 1,
                weights: [b0, b1 - b3, b2 + 2.0 * b3, 0.0],
            },
            _ => Row {
                at: k - 1,
                weights: [b0, b1, b2, b3],
            },
        }
    }

    fn of_second_derivative(node: usize) -> Row {
        Row {
            at: node - 1,
            weights: [1.0, -2.0, 1.0, 0.0],
        }
    }

    /// Multiplies this row, transposed, by another, and adds the result to the diagonal and the
    /// part below it.
    fn add_square(&self, other: &Row, factor: f64, matrix: &mut [[f64; BAND + 1]]) {
        for (i, a) in self.weights.iter().enumerate() {
            for (j, b) in other.weights.iter().enumerate() {
                let (row, column) = (self.at + i, other.at + j);
                if column <= row && a * b != 0.0 {
                    matrix[row][row - column] += factor * a * b;
                }
            }
        }
    }
}

/// Solves by Cholesky's method. `matrix[i][d]` is the element `d` left of the diagonal.
fn solved(mut matrix: Vec<[f64; BAND + 1]>, mut right: Vec<f64>) -> Vec<f64> {
    let n = right.len();
    for i in 0..n {
        for d in (0..=BAND.min(i)).rev() {
            let j = i - d;
            let mut sum = matrix[i][d];
            for k in i.saturating_sub(BAND)..j {
                if j - k <= BAND {
                    sum -= matrix[i][i - k] * matrix[j][j - k];
                }
            }
            matrix[i][d] = match d {
                0 => libm::sqrt(sum.max(f64::MIN_POSITIVE)),
                _ => sum / matrix[j][0],
            };
        }
    }
    for i in 0..n {
        for d in 1..=BAND.min(i) {
            right[i] -= matrix[i][d] * right[i - d];
        }
        right[i] /= matrix[i][0];
    }
    for i in (0..n).rev() {
        for d in 1..=BAND.min(n - 1 - i) {
            right[i] -= matrix[i + d][d] * right[i + d];
        }
        right[i] /= matrix[i][0];
    }
    right
}
