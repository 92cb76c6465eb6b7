//! How many packets a link will deliver at least (NSDI 2013 §3.3): for each of the next eight
//! ticks, the count that the arrivals until its end exceed with 95% probability.

use std::sync::{Arc, Mutex, PoisonError};

use super::model::{BINS, Belief, Model, dot, support};

/// The number of ticks of a forecast: 160 ms.
pub const TICKS: usize = 8;
/// Cumulative packets by the end of each tick.
pub type Forecast = [u32; TICKS];

/// The model of a link, and the table that turns a belief into a forecast.
#[derive(Debug)]
pub struct Forecaster {
    /// The change of the belief from tick to tick.
    pub model: Model,
    /// For each tick, each count and each current rate of the link: the probability of at most that
    /// many arrivals until the tick's end.
    at_most: [Vec<Belief>; TICKS],
}

/// The bits of the parameters.
type Key = (u64, u64);
/// Tables that were computed. Flows with the same parameters share one.
static COMPUTED: Mutex<Vec<(Key, Arc<Forecaster>)>> = Mutex::new(Vec::new());
/// The most tables that are kept; a sweep of a parameter does not need all at once.
const KEPT: usize = 8;

impl Forecaster {
    /// The forecaster for rates up to `max_rate` packets a second, which change by `sigma` in a
    /// second.
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

    /// §3.3: convolves the counts of the ticks from each rate, over which the rate spreads. The
    /// first tick has the current rate, as in `processforecaster.cc`.
    fn new(max_rate: f64, sigma: f64) -> Forecaster {
        let model = Model::new(max_rate, sigma);
        let most = model.poisson().len() - 1;
        let mut at_most = std::array::from_fn(|t| vec![[0.0; BINS]; (t + 1) * most + 1]);
        for now in 0..BINS {
            let mut belief = [0.0; BINS];
            belief[now] = 1.0;
            let mut counts = vec![1.0];
            for table in &mut at_most {
                let tick = model.poisson().iter().map(|row| dot(row, &belief));
                let tick: Vec<f64> = tick.map(f64::from).collect();
                counts = convolved(&counts, &tick);
                let mut sum: f64 = 0.0;
                for (row, probability) in table.iter_mut().zip(&counts) {
                    sum += probability;
                    row[now] = sum as f32;
                }
                belief = model.evolve(&belief);
            }
        }
        Forecaster { model, at_most }
    }

    /// The counts that are exceeded with probability 1 - `risk`. The search begins at the last
    /// forecast, which is close.
    pub fn forecast(&self, belief: &Belief, risk: f32, last: &Forecast) -> Forecast {
        let bins = support(belief);
        let mut forecast = *last;
        for (count, table) in forecast.iter_mut().zip(&self.at_most) {
            let reaches =
                |count: usize| dot(&table[count][bins.clone()], &belief[bins.clone()]) >= risk;
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
