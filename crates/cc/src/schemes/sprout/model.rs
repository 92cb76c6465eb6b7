//! What Sprout believes of a link (NSDI 2013 §3.1, §3.2): packets leave it as a Poisson process whose
//! rate lambda wanders in Brownian motion, and which tends to stay at zero once it is there.

use crate::Duration;

/// tau: how often the belief is brought up to date.
pub const TICK: Duration = Duration::from_millis(20);
/// Rates that are told apart (256 and zero).
pub const BINS: usize = 257;
/// A probability for each of the rates.
pub type Belief = [f64; BINS];

/// lambda_z, a second: how readily a link leaves an outage.
const OUTAGE_ESCAPE: f64 = 1.0;
/// Brownian steps longer than this are left out (keithw/sprout `process.cc`).
const DEVIATIONS: f64 = 5.0;
/// Less than this is none at all: it would take numbers too small for the processor to be fast at.
const NEGLIGIBLE: f64 = 1e-100;

/// How the belief moves from tick to tick.
#[derive(Debug)]
pub struct Model {
    /// lambda tau of each bin: packets a tick.
    means: Belief,
    /// Their logarithms; that of zero is never used.
    log_means: Belief,
    /// A step goes at most so many bins up or down.
    reach: usize,
    /// From each bin, the probability of a step to each bin in reach.
    steps: Vec<f64>,
}

impl Model {
    /// Rates up to `max_rate` packets a second, which wander by `sigma` packets a second in a second.
    pub fn new(max_rate: f64, sigma: f64) -> Model {
        let width = max_rate / (BINS - 1) as f64;
        let middle = |bin: usize| match bin {
            0 => 0.0,
            _ => (bin as f64 + 0.5) * width,
        };
        let deviation = step_deviation(sigma);
        let reach = ((DEVIATIONS * deviation / width) as usize + 1).min(BINS - 1);
        let below = |edge: f64| 0.5 * libm::erfc(-edge / deviation / std::f64::consts::SQRT_2);
        // Rates beyond either end are taken for the end.
        let below_bin = |bin: usize, from: f64| match bin {
            0 => 0.0,
            BINS => 1.0,
            _ => below(bin as f64 * width - from),
        };
        let stay = below_bin(1, 0.0);
        let mut steps = vec![0.0; BINS * (2 * reach + 1)];
        for (from, row) in steps.chunks_exact_mut(2 * reach + 1).enumerate() {
            for (i, step) in row.iter_mut().enumerate() {
                let Some(to) = (from + i).checked_sub(reach).filter(|&to| to < BINS) else {
                    continue;
                };
                let brownian = below_bin(to + 1, middle(from)) - below_bin(to, middle(from));
                *step = brownian * stickiness(from, to, stay);
            }
        }
        let means: Belief = std::array::from_fn(|bin| middle(bin) * TICK.as_secs_f64());
        Model {
            means,
            log_means: means.map(libm::log),
            reach,
            steps,
        }
    }

    /// lambda tau of each bin.
    pub fn means(&self) -> &Belief {
        &self.means
    }

    /// A tick passes: the rate may have moved.
    pub fn evolve(&self, belief: &Belief) -> Belief {
        let mut moved = [0.0; BINS + 2 * BINS];
        let rows = self.steps.chunks_exact(2 * self.reach + 1);
        for (from, (row, &probability)) in rows.zip(belief).enumerate() {
            if probability > NEGLIGIBLE {
                let first = from + BINS - self.reach;
                let targets = &mut moved[first..first + row.len()];
                for (target, step) in targets.iter_mut().zip(row) {
                    *target += probability * step;
                }
            }
        }
        let mut belief = [0.0; BINS];
        belief.copy_from_slice(&moved[BINS..2 * BINS]);
        normalised(belief)
    }

    /// `arrived` packets came in a tick (§3.2.1, Bayes's rule).
    pub fn observe(&self, belief: &Belief, arrived: u64) -> Belief {
        let mut likelihood = [0.0; BINS];
        let mut most = f64::NEG_INFINITY;
        for (bin, l) in likelihood.iter_mut().enumerate() {
            *l = self.log_likelihood(bin, arrived);
            most = most.max(*l);
        }
        // Set against the likeliest rate, lest a burst that no rate explains leaves nothing.
        for (l, p) in likelihood.iter_mut().zip(belief) {
            *l = p * libm::exp(*l - most);
        }
        normalised(likelihood)
    }

    /// The logarithm of Poisson(lambda tau, `count`), but for the term of `count` alone.
    pub fn log_likelihood(&self, bin: usize, count: u64) -> f64 {
        match (bin, count) {
            (_, 0) => -self.means[bin],
            (0, _) => f64::NEG_INFINITY,
            _ => count as f64 * self.log_means[bin] - self.means[bin],
        }
    }
}

/// Before anything is known every rate is as likely (§3.2.1).
pub fn ignorance() -> Belief {
    [1.0 / BINS as f64; BINS]
}

/// The Brownian motion of a tick, in packets a second.
pub fn step_deviation(sigma: f64) -> f64 {
    sigma * libm::sqrt(TICK.as_secs_f64())
}

/// The probability that an outage ends within a tick.
pub fn escape_probability() -> f64 {
    1.0 - libm::exp(-OUTAGE_ESCAPE * TICK.as_secs_f64())
}

/// §3.1: an outage is left with the escape probability only, where Brownian motion would leave it with
/// 1 - `stay`.
fn stickiness(from: usize, to: usize, stay: f64) -> f64 {
    match (from, to) {
        (0, 0) => (1.0 - escape_probability()) / stay,
        (0, _) => escape_probability() / (1.0 - stay),
        _ => 1.0,
    }
}

/// The belief with sum one; ignorance if there is nothing left of it.
fn normalised(belief: Belief) -> Belief {
    let sum: f64 = belief.iter().sum();
    if sum > 0.0 {
        belief.map(|p| p / sum)
    } else {
        ignorance()
    }
}
