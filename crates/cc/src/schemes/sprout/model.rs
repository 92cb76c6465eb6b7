//! Sprout's belief about a link (NSDI 2013 §3.1, §3.2): packets leave it as a Poisson process. Its
//! rate lambda changes by Brownian motion, and tends to stay at zero once it is there.

use std::ops::Range;

use crate::Duration;

/// tau: the interval between updates of the belief.
pub const TICK: Duration = Duration::from_millis(20);
/// The number of rates that are distinguished (256 and zero).
pub const BINS: usize = 257;
/// A probability for each rate, in single precision: a forecast is a whole number of packets, and
/// the processor computes four at once.
pub type Belief = [f32; BINS];

/// lambda_z, per second: how readily a link leaves an outage.
const OUTAGE_ESCAPE: f64 = 1.0;
/// The longest Brownian step, in standard deviations (keithw/sprout `process.cc`).
const DEVIATIONS: f64 = 5.0;
/// The smallest probability that counts. It is far less than what the bound on steps loses.
const NEGLIGIBLE: f32 = 1e-12;
/// The number of rates that are computed together.
const LANES: usize = 16;

/// The change of the belief from tick to tick.
#[derive(Debug)]
pub struct Model {
    /// lambda tau of each bin, in packets a tick.
    pub means: [f64; BINS],
    /// The logarithms of the means; that of zero is never used.
    log_means: [f64; BINS],
    /// The probability of a step up, and of a step down, by this number of bins.
    steps: Vec<f32>,
    /// The probability of a step from each bin to the lowest bin, and to the highest.
    to_lowest: Belief,
    to_highest: Belief,
    /// The probability of a step from an outage to each bin.
    from_outage: Belief,
    /// The probability of each count at each rate.
    poisson: Vec<Belief>,
}

impl Model {
    /// A model of rates up to `max_rate` packets a second, which change by `sigma` packets a second
    /// in a second.
    pub fn new(max_rate: f64, sigma: f64) -> Model {
        let width = max_rate / (BINS - 1) as f64;
        let deviation = step_deviation(sigma);
        let reach = ((DEVIATIONS * deviation / width) as usize + 1).min(BINS - 1);
        // The probability of a Brownian step by at most this number of bins. Rates beyond either
        // end count as the end.
        let at_most = |bins: f64| {
            0.5 * libm::erfc(-bins * width / deviation * std::f64::consts::FRAC_1_SQRT_2)
        };
        let means: [f64; BINS] =
            std::array::from_fn(|bin| middle(bin) * width * TICK.as_secs_f64());
        let log_means = means.map(libm::log);
        // The largest count is four standard deviations above the highest mean.
        let most = (means[BINS - 1] + 4.0 * libm::sqrt(means[BINS - 1])) as u64 + 1;
        let poisson = |count: u64| {
            let log_factorial = libm::lgamma(count as f64 + 1.0);
            let log = |bin| log_likelihood(&means, &log_means, bin, count) - log_factorial;
            std::array::from_fn(|bin| libm::exp(log(bin)) as f32)
        };
        // `process.cc`: Brownian motion times the probability to stay or to escape. The sum is less
        // than one. So an outage becomes less likely against other rates the longer nothing is
        // observed.
        let from_outage = |to: usize| match to {
            0 => (1.0 - escape_probability()) * at_most(1.0),
            _ => {
                let above = |bin: usize| at_most(-(bin as f64));
                let beyond = if to + 1 < BINS { above(to + 1) } else { 0.0 };
                escape_probability() * (above(to) - beyond)
            }
        };
        Model {
            means,
            log_means,
            steps: (0..=reach)
                .map(|bins| at_most(bins as f64 + 0.5) - at_most(bins as f64 - 0.5))
                .map(|probability| probability as f32)
                .collect(),
            to_lowest: std::array::from_fn(|from| at_most(1.0 - middle(from)) as f32),
            to_highest: std::array::from_fn(|from| {
                at_most(middle(from) - (BINS - 1) as f64) as f32
            }),
            from_outage: std::array::from_fn(|to| from_outage(to) as f32),
            poisson: (0..=most).map(poisson).collect(),
        }
    }

    /// For each count with a noticeable probability: its probability in a tick at each rate.
    pub fn poisson(&self) -> &[Belief] {
        &self.poisson
    }

    /// A tick passes, in which the rate may change.
    pub fn evolve(&self, belief: &Belief) -> Belief {
        // The space for a step beyond either end.
        const LOW: usize = BINS;
        let mut from = [0.0; 3 * BINS + LANES];
        from[LOW + 1..LOW + BINS].copy_from_slice(&belief[1..]);
        let (support, reach) = (support(belief), self.steps.len() - 1);
        let reached = support.start.saturating_sub(reach)..(support.end + reach).min(BINS);
        let mut moved = [0.0; BINS + LANES];
        for to in reached.step_by(LANES) {
            let mut sums: [f32; LANES] =
                std::array::from_fn(|lane| self.steps[0] * from[LOW + to + lane]);
            let below = from[..LOW + to + LANES - 1].windows(LANES).rev();
            let above = from[LOW + to + 1..].windows(LANES);
            for ((step, below), above) in self.steps[1..].iter().zip(below).zip(above) {
                for ((sum, b), a) in sums.iter_mut().zip(below).zip(above) {
                    *sum += step * (b + a);
                }
            }
            moved[to..to + LANES].copy_from_slice(&sums);
        }
        let mut moved: Belief = std::array::from_fn(|bin| moved[bin]);
        let without_outage = &from[LOW..][..BINS];
        moved[0] = dot(&self.to_lowest, without_outage);
        moved[BINS - 1] = dot(&self.to_highest, without_outage);
        for (to, escape) in moved.iter_mut().zip(&self.from_outage) {
            *to += belief[0] * escape;
        }
        normalised(moved)
    }

    /// Takes the `arrived` packets of a tick (§3.2.1, Bayes's rule).
    pub fn observe(&self, belief: &Belief, arrived: u64) -> Belief {
        let mut product = match self.poisson.get(arrived as usize) {
            Some(likelihood) => *likelihood,
            // Likelihoods are relative to the likeliest, which is the highest rate. Otherwise a
            // burst that no rate explains would leave nothing.
            None => {
                let log = |bin| log_likelihood(&self.means, &self.log_means, bin, arrived);
                let highest = belief.iter().rposition(|p| *p > 0.0).unwrap_or(BINS - 1);
                std::array::from_fn(|bin| libm::exp((log(bin) - log(highest)).min(0.0)) as f32)
            }
        };
        for (l, p) in product.iter_mut().zip(belief) {
            *l *= p;
        }
        normalised(product)
    }
}

/// The middle of a bin, in bins. The lowest bin is an outage.
fn middle(bin: usize) -> f64 {
    match bin {
        0 => 0.0,
        _ => bin as f64 + 0.5,
    }
}

/// The logarithm of Poisson(lambda tau, `count`), without the term that depends on `count` alone.
fn log_likelihood(means: &[f64; BINS], log_means: &[f64; BINS], bin: usize, count: u64) -> f64 {
    match (bin, count) {
        (_, 0) => -means[bin],
        (0, _) => f64::NEG_INFINITY,
        _ => count as f64 * log_means[bin] - means[bin],
    }
}

/// The sum of a[i] * b[i] in eight lanes, so that the processor can add them at once, always in the
/// same order.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0; 8];
    let (a, b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest = a.remainder().iter().zip(b.remainder());
    let rest: f32 = rest.map(|(x, y)| x * y).sum();
    for (a, b) in a.zip(b) {
        for ((lane, x), y) in lanes.iter_mut().zip(a).zip(b) {
            *lane += x * y;
        }
    }
    lanes.iter().sum::<f32>() + rest
}

/// The belief before anything is known, in which all rates are equally likely (§3.2.1).
pub fn uniform_belief() -> Belief {
    [1.0 / BINS as f32; BINS]
}

/// The standard deviation of a tick's Brownian motion, in packets a second.
pub fn step_deviation(sigma: f64) -> f64 {
    sigma * libm::sqrt(TICK.as_secs_f64())
}

/// The probability that an outage ends within a tick.
pub fn escape_probability() -> f64 {
    1.0 - libm::exp(-OUTAGE_ESCAPE * TICK.as_secs_f64())
}

/// The bins from the first to the last with any probability, in whole lanes.
pub fn support(belief: &Belief) -> Range<usize> {
    let first = belief.iter().position(|p| *p > 0.0).unwrap_or(0);
    let last = belief.iter().rposition(|p| *p > 0.0).unwrap_or(BINS - 1);
    first / 8 * 8..((last / 8 + 1) * 8).min(BINS)
}

/// The belief scaled to a sum of one, or that of the start if nothing is left of it.
fn normalised(belief: Belief) -> Belief {
    let sum = dot(&belief, &[1.0; BINS]);
    if sum > 0.0 {
        belief.map(|p| if p > NEGLIGIBLE * sum { p / sum } else { 0.0 })
    } else {
        uniform_belief()
    }
}
