//! How many packets a link will deliver at least (NSDI 2013 §3.3): for each of the next eight ticks the
//! count that all arrivals up to its end exceed with 95% probability.

use std::sync::{Arc, Mutex, PoisonError};

use super::model::{BINS, Belief, Model};

/// So many ticks are forecast: 160 ms.
pub const TICKS: usize = 8;
/// Cumulative packets by the end of each tick.
pub type Forecast = [u32; TICKS];

/// The model of a link and the table with which a belief becomes a forecast.
#[derive(Debug)]
pub struct Forecaster {
    /// How the belief moves.
    pub model: Model,
    /// For each tick, and for each count, the probability of at most that many arrivals by its end,
    /// from each rate that the link may have now.
    at_most: [Vec<Belief>; TICKS],
}

/// The bits of the parameters.
type Key = (u64, u64);
/// Tables that were computed: they are the same for all flows of the same parameters.
static COMPUTED: Mutex<Vec<(Key, Arc<Forecaster>)>> = Mutex::new(Vec::new());
/// Whoever sweeps a parameter does not need them all at once.
const KEPT: usize = 8;

impl Forecaster {
    /// That of rates up to `max_rate` packets a second, which wander by `sigma` in a second.
    pub fn shared(max_rate: f64, sigma: f64) -> Arc<Forecaster> {
        let key = (max_rate.to_bits(), sigma.to_bits());
        let mut computed = COMPUTED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, forecaster)) = computed.iter().find(|(k, _)| *k == key) {
            return Arc::clone(forecaster);
        }
        let forecaster = Arc::new(Forecaster::new(max_rate, sigma));
        if computed.len() == KEPT {
            computed.remove(0);
        }
        computed.push((key, Arc::clone(&forecaster)));
        forecaster
    }

    /// §3.3: from each rate, convolves the counts of the ticks, over which the rate spreads. (The first
    /// tick has the rate of now, as in `processforecaster.cc`.)
    fn new(max_rate: f64, sigma: f64) -> Forecaster {
        let model = Model::new(max_rate, sigma);
        let one_tick = counts_of_a_tick(&model);
        let most = one_tick.len() - 1;
        let mut at_most = std::array::from_fn(|t| vec![[0.0; BINS]; (t + 1) * most + 1]);
        for now in 0..BINS {
            let mut belief = [0.0; BINS];
            belief[now] = 1.0;
            let mut counts = vec![1.0];
            for table in &mut at_most {
                let tick: Vec<f64> = one_tick.iter().map(|row| dot(row, &belief)).collect();
                counts = convolved(&counts, &tick);
                let mut sum = 0.0;
                for (row, probability) in table.iter_mut().zip(&counts) {
                    sum += probability;
                    row[now] = sum;
                }
                belief = model.evolve(&belief);
            }
        }
        Forecaster { model, at_most }
    }

    /// The counts that are exceeded with probability 1 - `risk`. The last forecast is near to this one,
    /// so the search begins there.
    pub fn forecast(&self, belief: &Belief, risk: f64, last: &Forecast) -> Forecast {
        let mut forecast = *last;
        for (count, table) in forecast.iter_mut().zip(&self.at_most) {
            let reaches = |count: usize| dot(&table[count], belief) >= risk;
            let mut n = (*count as usize).min(table.len() - 1);
            while n > 0 && reaches(n - 1) {
                n -= 1;
            }
            while n + 1 < table.len() && !reaches(n) {
                n += 1;
            }
            *count = n as u32;
        }
        forecast
    }
}

/// For each count, its probability within a tick at each of the rates. Four deviations above the highest
/// rate's mean is as far as it goes.
fn counts_of_a_tick(model: &Model) -> Vec<Belief> {
    let highest = model.means()[BINS - 1];
    let limit = (highest + 4.0 * libm::sqrt(highest)) as u64 + 2;
    (0..limit)
        .map(|count| {
            let log_factorial = libm::lgamma(count as f64 + 1.0);
            std::array::from_fn(|bin| libm::exp(model.log_likelihood(bin, count) - log_factorial))
        })
        .collect()
}

fn convolved(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; a.len() + b.len() - 1];
    for (i, p) in a.iter().enumerate() {
        if *p > 0.0 {
            for (sum, q) in sums[i..].iter_mut().zip(b) {
                *sum += p * q;
            }
        }
    }
    sums
}

/// In eight lanes, so that the processor can add them at once; always in the same order.
fn dot(a: &Belief, b: &Belief) -> f64 {
    let mut lanes = [0.0; 8];
    let (a, b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(x, y)| x * y).sum();
    for (a, b) in a.zip(b) {
        for ((lane, x), y) in lanes.iter_mut().zip(a).zip(b) {
            *lane += x * y;
        }
    }
    lanes.iter().sum::<f64>() + rest
}
