//! Randomness: one independent stream for each (run seed, component name).

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A stream of random numbers for one component of one run. The draws of one component never change
/// those of another.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// The stream of the component `name` in the run `seed`.
    pub fn new(seed: u64, name: &str) -> Stream {
        // The seed is FNV-1a over the name; PCG expands it.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        });
        Stream(Pcg64Mcg::seed_from_u64(splitmix(seed).wrapping_add(hash)))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1).
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in [low, high).
    pub fn range(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// A whole number, uniform in 0..n (0 for n = 0).
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// True with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// Exponential with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }

    /// Normal with mean 0 and standard deviation 1 (Box-Muller).
    pub fn normal(&mut self) -> f64 {
        let r = libm::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
        r * libm::cos(2.0 * std::f64::consts::PI * self.uniform())
    }
}

fn splitmix(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ() {
        let draw = |seed, name| Stream::new(seed, name).bits();
        assert_eq!(draw(1, "loss"), draw(1, "loss"));
        assert_ne!(draw(1, "loss"), draw(2, "loss"));
        assert_ne!(draw(1, "loss"), draw(1, "start"));
    }

    #[test]
    fn mean_and_variance_match_the_distributions() {
        let mut s = Stream::new(7, "moments");
        let n = 200_000;
        let mean = |s: &mut Stream, f: fn(&mut Stream) -> f64| {
            (0..n).map(|_| f(s)).sum::<f64>() / f64::from(n)
        };
        assert!((mean(&mut s, |s| s.uniform()) - 0.5).abs() < 0.005);
        assert!((mean(&mut s, |s| s.exponential(3.0)) - 3.0).abs() < 0.03);
        assert!(mean(&mut s, |s| s.normal()).abs() < 0.01);
        let square = |s: &mut Stream| {
            let x = s.normal();
            x * x
        };
        assert!((mean(&mut s, square) - 1.0).abs() < 0.02);
        assert!((mean(&mut s, |s| s.below(10) as f64) - 4.5).abs() < 0.03);
    }
}
