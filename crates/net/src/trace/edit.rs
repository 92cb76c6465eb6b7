//! Traces made from other traces.

use std::ops::Range;

use headway_cc::{Duration, Rate};

use super::{BITS_PER_OPPORTUNITY, MAX_OPPORTUNITIES, NANOS_PER_MS, NANOS_PER_SEC};
use super::{Trace, TraceError};

impl Trace {
    /// The same pattern at another mean rate, at 1500 bytes an opportunity; the period stays.
    ///
    /// The number of opportunities up to any moment is multiplied by one factor and rounded down,
    /// so that gaps in the trace stay gaps. The mean is exact to half an opportunity.
    ///
    /// # Errors
    /// [`TraceError::BadScale`] if that is less than one opportunity or more than a trace may have.
    pub fn scaled_to_mean(&self, mean: Rate) -> Result<Trace, TraceError> {
        let old = self.count() as u128;
        let one = u128::from(BITS_PER_OPPORTUNITY * NANOS_PER_SEC);
        let bits = u128::from(mean.as_bps()) * u128::from(self.period().as_nanos());
        let new = (bits + one / 2) / one;
        if new == 0 || new > MAX_OPPORTUNITIES as u128 {
            return Err(TraceError::BadScale {
                mbps: mean.as_mbps(),
                period_s: self.period().as_secs_f64(),
            });
        }
        let mut at_ms = Vec::with_capacity(new as usize);
        for (i, &ms) in self.at_ms.iter().enumerate() {
            let upto = (i as u128 + 1) * new / old;
            at_ms.resize(upto as usize, ms);
        }
        Ok(Trace { at_ms })
    }

    /// Only these parts of the trace, one after another.
    ///
    /// An opportunity stands for what could be sent up to its time, so one at a part's beginning
    /// does not belong to it, except at 0, and one at its end does. The last one is put at the end
    /// of the last part, because it gives the trace its length.
    ///
    /// # Errors
    /// [`TraceError::BadPart`] if a part is empty, begins or ends between milliseconds or lies
    /// beyond the trace's end; [`TraceError::BadSeries`] if they have no opportunity or are too
    /// long.
    pub fn cut(&self, parts: &[Range<Duration>]) -> Result<Trace, TraceError> {
        let mut at_ms = Vec::new();
        let mut length_ms = 0u32;
        for (index, part) in parts.iter().enumerate() {
            let whole_ms = |d: Duration| {
                let ms = d.as_nanos() / NANOS_PER_MS;
                (ms * NANOS_PER_MS == d.as_nanos() && d <= self.period()).then_some(ms as u32)
            };
            let (Some(begin), Some(end), true) = (
                whole_ms(part.start),
                whole_ms(part.end),
                part.start < part.end,
            ) else {
                return Err(TraceError::BadPart {
                    index,
                    from_s: part.start.as_secs_f64(),
                    to_s: part.end.as_secs_f64(),
                    period_s: self.period().as_secs_f64(),
                });
            };
            let first = match begin {
                0 => 0,
                _ => self.at_ms.partition_point(|&ms| ms <= begin),
            };
            let last = self.at_ms.partition_point(|&ms| ms <= end);
            let moved = |&ms: &u32| ms - begin + length_ms;
            at_ms.extend(self.at_ms[first..last].iter().map(moved));
            length_ms = length_ms
                .checked_add(end - begin)
                .filter(|_| at_ms.len() <= MAX_OPPORTUNITIES)
                .ok_or(TraceError::BadSeries(
                    "the parts of the trace last over 49 days or have over 100000000 delivery opportunities; leave some out",
                ))?;
        }
        match at_ms.last_mut() {
            Some(last) => *last = length_ms,
            None => {
                return Err(TraceError::BadSeries(
                    "the parts of the trace have no delivery opportunity; name longer ones",
                ));
            }
        }
        Ok(Trace { at_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::tests::{trace, traces};
    use proptest::prelude::*;

    fn secs(range: Range<f64>) -> Range<Duration> {
        Duration::from_secs_f64(range.start)..Duration::from_secs_f64(range.end)
    }

    #[test]
    fn scaling_multiplies_the_opportunities() {
        // 4 opportunities in 8 ms are 6 Mbit/s.
        let t = trace(&[1, 1, 2, 8]);
        assert_eq!(t.mean_mbps(), 6.0);
        let scaled = |mbps| t.scaled_to_mean(Rate::from_mbps(mbps));
        assert_eq!(scaled(6.0), Ok(t.clone()));
        assert_eq!(scaled(12.0), Ok(trace(&[1, 1, 1, 1, 2, 2, 8, 8])));
        assert_eq!(scaled(9.0), Ok(trace(&[1, 1, 1, 2, 8, 8])));
        assert_eq!(scaled(3.0), Ok(trace(&[1, 8])));
        assert_eq!(
            scaled(0.1).unwrap_err().to_string(),
            "a mean of 0.1 Mbit/s is less than one delivery opportunity or over 100000000 in the trace's 0.008 s; \
             choose another rate"
        );
        assert!(t.scaled_to_mean(Rate::MAX).is_err());
    }

    #[test]
    fn cutting_joins_the_parts() {
        let t = trace(&[0, 5, 10, 10, 15, 20, 30]);
        assert_eq!(t.cut(&[secs(0.0..0.010)]), Ok(trace(&[0, 5, 10, 10])));
        assert_eq!(t.cut(&[secs(0.010..0.020)]), Ok(trace(&[5, 10])));
        // Opportunities at 20 and 30, then those at 0 and 5, the last moved to the end.
        assert_eq!(
            t.cut(&[secs(0.016..0.030), secs(0.0..0.007)]),
            Ok(trace(&[4, 14, 14, 21]))
        );
        for part in [0.010..0.010, 0.010..0.005, 0.010..0.031, 0.0001..0.010] {
            let error = t
                .cut(&[secs(0.0..0.005), secs(part)])
                .unwrap_err()
                .to_string();
            assert!(error.starts_with("part 1 of the trace, "), "{error}");
            assert!(error.ends_with("from 0 to its length of 0.03 s"), "{error}");
        }
        assert!(t.cut(&[]).is_err());
        assert!(t.cut(&[secs(0.021..0.029)]).is_err());
    }

    proptest! {
        #[test]
        fn scaling_keeps_pattern_and_period(t in traces(), mbps in 0.5f64..200.0) {
            let wanted = Rate::from_mbps(mbps);
            let Ok(scaled) = t.scaled_to_mean(wanted) else { return Ok(()) };
            prop_assert_eq!(scaled.period(), t.period());
            let one = 12e-3 / t.period().as_secs_f64();
            prop_assert!((scaled.mean_mbps() - mbps).abs() <= one / 2.0 + 1e-6);
            // Up to every millisecond, the count is the old one times the factor, to within one.
            let factor = scaled.count() as f64 / t.count() as f64;
            for ms in 0..=40u32 {
                let upto = |t: &Trace| t.at_ms.partition_point(|&at| at <= ms) as f64;
                let expected = upto(&t) * factor;
                prop_assert!((expected - 1.0..=expected + 1e-9).contains(&upto(&scaled)));
            }
            // The scaled trace is valid in the format.
            prop_assert_eq!(Trace::parse(scaled.to_mahimahi()), Ok(scaled));
        }

        /// A trace that is cut anywhere and joined again is the same trace.
        #[test]
        fn parts_of_a_trace_join_to_the_whole(t in traces(), cuts in prop::collection::vec(1u64..40, 0..5)) {
            let end = t.period().as_nanos() / NANOS_PER_MS;
            let mut at: Vec<u64> = cuts.into_iter().filter(|&ms| ms < end).collect();
            at.extend([0, end]);
            at.sort_unstable();
            at.dedup();
            let parts: Vec<_> = at.windows(2)
                .map(|w| Duration::from_millis(w[0])..Duration::from_millis(w[1])).collect();
            let joined = t.cut(&parts);
            prop_assert_eq!(joined.as_ref(), Ok(&t));
            // A part has as many opportunities as the trace has in it.
            for part in &parts {
                let ms = |d: Duration| (d.as_nanos() / NANOS_PER_MS) as u32;
                let inside = |&&at: &&u32| at <= ms(part.end) && (at > ms(part.start) || ms(part.start) == 0);
                let count = t.at_ms.iter().filter(inside).count();
                match t.cut(std::slice::from_ref(part)) {
                    Ok(cut) => {
                        prop_assert_eq!(cut.count(), count);
                        prop_assert_eq!(cut.period(), part.end.saturating_sub(part.start));
                    }
                    Err(_) => prop_assert_eq!(count, 0),
                }
            }
        }
    }
}
