//! Percentiles of durations in bounded memory.

use headway_cc::Duration;

/// Counts durations in logarithmic bins, 512 to an octave: a percentile is off by 0.1% at most.
///
/// Durations below 1.024 us count as that much. Octaves are allocated when first used, 2 kB each. A
/// bin stops at 2^32 - 1, an hour of equal delays at 10 Gbit/s.
#[derive(Clone, Debug)]
pub struct LogHistogram {
    octaves: [Option<Box<[u32; LogHistogram::BINS]>>; LogHistogram::OCTAVES],
    count: u64,
    sum_ns: u128,
}

impl Default for LogHistogram {
    fn default() -> LogHistogram {
        LogHistogram {
            octaves: [const { None }; LogHistogram::OCTAVES],
            count: 0,
            sum_ns: 0,
        }
    }
}

impl LogHistogram {
    const BITS: u32 = 9;
    const BINS: usize = 1 << Self::BITS;
    /// The first octave begins at 2^10 ns.
    const FIRST: u32 = 10;
    const OCTAVES: usize = (u64::BITS - Self::FIRST) as usize;
    const MIN: u64 = 1 << Self::FIRST;

    /// Adds one duration.
    #[inline]
    pub fn add(&mut self, d: Duration) {
        let ns = d.as_nanos().max(Self::MIN);
        let exponent = 63 - ns.leading_zeros();
        let bin = (ns >> (exponent - Self::BITS)) as usize & (Self::BINS - 1);
        let octave = (exponent - Self::FIRST) as usize;
        self.count += 1;
        self.sum_ns += u128::from(d.as_nanos());
        match &mut self.octaves[octave] {
            Some(bins) => bins[bin] = bins[bin].saturating_add(1),
            None => self.open(octave)[bin] += 1,
        }
    }

    #[cold]
    fn open(&mut self, octave: usize) -> &mut [u32; Self::BINS] {
        self.octaves[octave].get_or_insert_with(|| Box::new([0; Self::BINS]))
    }

    /// How many durations were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean in ms, exact; `None` if empty.
    pub fn mean_ms(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64 / 1e6)
    }

    /// The nearest-rank percentile `p` (0 to 1) in ms: the middle of the bin that holds the
    /// value of rank ceil(p n); `None` if empty.
    pub fn percentile_ms(&self, p: f64) -> Option<f64> {
        let rank = (libm::ceil(p * self.count as f64) as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        let mut last = None;
        for (middle_ms, n) in self.bins() {
            last = Some(middle_ms);
            seen += u64::from(n);
            if seen >= rank {
                break;
            }
        }
        // If a bin is full, it shows fewer than were added.
        last
    }

    /// The sum of what durations exceed `limit` by, in ms.
    pub fn excess_ms(&self, limit: Duration) -> f64 {
        let limit_ms = limit.as_millis_f64();
        let longer = self.bins().filter(|(middle_ms, _)| *middle_ms > limit_ms);
        longer
            .map(|(middle_ms, n)| (middle_ms - limit_ms) * f64::from(n))
            .sum()
    }

    /// The non-empty bins, in order: the middle in ms, and the number of durations.
    fn bins(&self) -> impl Iterator<Item = (f64, u32)> {
        self.octaves.iter().enumerate().flat_map(|(octave, bins)| {
            let width = 1u64 << (octave as u32 + Self::FIRST - Self::BITS);
            let bins = bins.iter().flat_map(|bins| bins.iter().enumerate());
            bins.filter(|(_, n)| **n > 0).map(move |(bin, &n)| {
                let low = (Self::BINS + bin) as u64 * width;
                ((low as f64 + width as f64 / 2.0) / 1e6, n)
            })
        })
    }

    /// Adds all durations of `other`.
    pub fn merge(&mut self, other: &LogHistogram) {
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        for (octave, bins) in other.octaves.iter().enumerate() {
            if let Some(bins) = bins {
                let own = self.open(octave);
                own.iter_mut()
                    .zip(bins.iter())
                    .for_each(|(a, b)| *a = a.saturating_add(*b));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_thousandth_of_the_exact_ones() {
        let mut stream = headway_cc::Stream::new(1, "histogram");
        let mut histogram = LogHistogram::default();
        let mut exact: Vec<u64> = (0..100_001)
            .map(|_| (1e6 * libm::exp(3.0 * stream.normal())) as u64 + 1024)
            .collect();
        exact
            .iter()
            .for_each(|&ns| histogram.add(Duration::from_nanos(ns)));
        exact.sort_unstable();
        for p in [0.001, 0.05, 0.5, 0.95, 0.999] {
            let truth = exact[(libm::ceil(p * exact.len() as f64) as usize) - 1] as f64 / 1e6;
            let ours = histogram.percentile_ms(p).unwrap();
            assert!(
                (ours / truth - 1.0).abs() <= 0.001,
                "p{p}: {ours} against {truth}"
            );
        }
        let mean = exact.iter().map(|&n| n as f64).sum::<f64>() / exact.len() as f64 / 1e6;
        assert!((histogram.mean_ms().unwrap() / mean - 1.0).abs() < 1e-9);
    }

    #[test]
    fn excess_over_a_limit_is_summed() {
        let mut histogram = LogHistogram::default();
        for ms in [1, 4, 6, 9] {
            histogram.add(Duration::from_millis(ms));
        }
        let excess = histogram.excess_ms(Duration::from_millis(5));
        assert!((excess - 5.0).abs() < 0.015, "1 ms and 4 ms, not {excess}");
        assert_eq!(histogram.excess_ms(Duration::from_millis(10)), 0.0);
    }

    #[test]
    fn full_bins_stop() {
        let mut histogram = LogHistogram::default();
        histogram.add(Duration::from_millis(1));
        // Doubled 33 times.
        for _ in 0..33 {
            histogram.merge(&histogram.clone());
        }
        histogram.add(Duration::from_millis(1));
        let p = histogram.percentile_ms(1.0).unwrap();
        assert!((p - 1.0).abs() < 0.001, "{p}");
    }

    #[test]
    fn merging_adds_counts() {
        let (mut a, mut b, mut both) = Default::default();
        for i in 1..5_000u64 {
            let d = Duration::from_nanos(i * i * 1000);
            let half: &mut LogHistogram = if i % 3 == 0 { &mut a } else { &mut b };
            half.add(d);
            LogHistogram::add(&mut both, d);
        }
        a.merge(&b);
        assert_eq!(a.count(), both.count());
        assert_eq!(a.mean_ms(), both.mean_ms());
        for p in [0.0, 0.3, 0.95, 1.0] {
            assert_eq!(a.percentile_ms(p), both.percentile_ms(p));
        }
        assert_eq!(LogHistogram::default().percentile_ms(0.5), None);
    }
}
