//! Packet-delivery traces in mahimahi's format.
//!
//! A trace is a text of non-decreasing whole milliseconds, one line for each opportunity to
//! deliver a packet; several in one millisecond are written as equal lines. The last line is the
//! trace's length: after it the trace begins again, so that an opportunity at the very end falls
//! together with one at 0 of the next pass (Netravali et al., "Mahimahi", USENIX ATC 2015).

mod edit;
mod foreign;

use std::fmt::Write;

use headway_cc::{Duration, Time};
use thiserror::Error;

pub use foreign::looks_like;

/// Bits that one opportunity counts for in a mean rate: 1500 bytes of IP packet.
const BITS_PER_OPPORTUNITY: u64 = 1500 * 8;
const NANOS_PER_SEC: u64 = 1_000_000_000;
const NANOS_PER_MS: u64 = 1_000_000;
/// The most opportunities of a trace: more than a day at 1 Gbit/s; 400 MB in memory.
const MAX_OPPORTUNITIES: usize = 100_000_000;
/// How many bytes of a file show what kind it is.
const HEAD: usize = 4096;

/// Delivery opportunities over time. It is never empty, and its period is at least a millisecond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Milliseconds since the trace's beginning, non-decreasing; the last one is over 0.
    at_ms: Vec<u32>,
}

/// Why a trace was refused. Each error displays as one line.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TraceError {
    /// The trace has no line.
    #[error(
        "the trace is empty; it needs a line for each delivery opportunity, in whole milliseconds"
    )]
    Empty,
    /// It is another kind of file.
    #[error("this looks like {0}")]
    Foreign(String),
    /// A line is not a time.
    #[error(
        "line {line}: '{text}' is not a time{}; write whole milliseconds from 0 to {}",
        line_like(text),
        u32::MAX
    )]
    NotATime {
        /// The line's number, from 1.
        line: usize,
        /// The line's text, shortened.
        text: String,
    },
    /// A line is earlier than the one before it.
    #[error("line {line}: {ms} ms comes after {before} ms; times must not decrease")]
    Decreasing {
        /// The line's number, from 1.
        line: usize,
        /// The time on this line.
        ms: u32,
        /// The time on the line before.
        before: u32,
    },
    /// Every opportunity is at 0.
    #[error("line {line}: the last line is 0 ms; it is the trace's length and must be over 0")]
    NoLength {
        /// The number of the last line, from 1.
        line: usize,
    },
    /// The trace has more opportunities than any real one.
    #[error("line {line}: too many delivery opportunities; a trace may have {MAX_OPPORTUNITIES}")]
    TooMany {
        /// The number of the first line too many, from 1.
        line: usize,
    },
    /// A rate is malformed.
    #[error("rate {index} of the series is {mbps} Mbit/s; write finite rates from 0 to 1000000")]
    BadRate {
        /// The rate's index, from 0.
        index: usize,
        /// The rate.
        mbps: f64,
    },
    /// A trace of this length cannot have this mean rate.
    #[error(
        "a mean of {mbps} Mbit/s is less than one delivery opportunity or over {MAX_OPPORTUNITIES} in the trace's {period_s} s; choose another rate"
    )]
    BadScale {
        /// The mean rate.
        mbps: f64,
        /// The trace's length.
        period_s: f64,
    },
    /// A part is not within the trace.
    #[error(
        "part {index} of the trace, {from_s} to {to_s} s, is not valid; write whole milliseconds, the first before the second, from 0 to its length of {period_s} s"
    )]
    BadPart {
        /// The part's index, from 0.
        index: usize,
        /// Where the part begins.
        from_s: f64,
        /// Where the part ends.
        to_s: f64,
        /// The trace's length.
        period_s: f64,
    },
    /// A series of rates or parts does not make a trace.
    #[error("{0}")]
    BadSeries(&'static str),
}

impl Trace {
    /// Reads mahimahi's format. Lines may end in LF or CRLF.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Trace, TraceError> {
        let text = text.as_ref();
        let mut at_ms: Vec<u32> = Vec::with_capacity((text.len() / 6).min(MAX_OPPORTUNITIES));
        let body = text.strip_suffix(b"\n").unwrap_or(text);
        if body.is_empty() {
            return Err(TraceError::Empty);
        }
        for (i, line) in body.split(|&b| b == b'\n').enumerate() {
            let digits = line.strip_suffix(b"\r").unwrap_or(line);
            let ms = parse_ms(digits).ok_or_else(|| not_a_time(text, i + 1, digits))?;
            match at_ms.last() {
                Some(&before) if ms < before => {
                    return Err(TraceError::Decreasing {
                        line: i + 1,
                        ms,
                        before,
                    });
                }
                _ if at_ms.len() == MAX_OPPORTUNITIES => {
                    return Err(TraceError::TooMany { line: i + 1 });
                }
                _ => at_ms.push(ms),
            }
        }
        match at_ms.last() {
            None | Some(0) => Err(TraceError::NoLength { line: at_ms.len() }),
            Some(_) => Ok(Trace { at_ms }),
        }
    }

    /// Makes a trace that follows `rates_mbps` (Mbit/s), one after another for `interval` each.
    ///
    /// Fractions of an opportunity carry over, so that the mean is kept. An opportunity is due when
    /// its last bit would have been sent, rounded up to a millisecond. The last one is put at the
    /// end of the series, because it gives the trace its length.
    pub fn from_rates(rates_mbps: &[f64], interval: Duration) -> Result<Trace, TraceError> {
        Trace::of_steps(rates_mbps.iter().map(|&mbps| (interval, mbps)))
    }

    /// Same as [`from_rates`](Self::from_rates), for rates (Mbit/s) that each hold for a length of
    /// time.
    pub fn from_steps(steps: &[(Duration, f64)]) -> Result<Trace, TraceError> {
        Trace::of_steps(steps.iter().copied())
    }

    fn of_steps(steps: impl Iterator<Item = (Duration, f64)> + Clone) -> Result<Trace, TraceError> {
        let nanos = |length: Duration| u128::from(length.as_nanos());
        let length: u128 = steps.clone().map(|(length, _)| nanos(length)).sum();
        if length == 0 || length > u128::from(u32::MAX) * u128::from(NANOS_PER_MS) {
            return Err(TraceError::BadSeries(
                "the series of rates lasts no time or over 49 days; give at least one rate and an interval over 0",
            ));
        }
        let wrong = (steps.clone().enumerate()).find(|(_, (_, mbps))| !(0.0..=1e6).contains(mbps));
        if let Some((index, (_, mbps))) = wrong {
            return Err(TraceError::BadRate { index, mbps });
        }
        // The unit is a thousandth of a bit-nanosecond a second, so that sums are exact.
        let one = u128::from(BITS_PER_OPPORTUNITY * NANOS_PER_SEC) * 1000;
        let milli_bps = |mbps: f64| (mbps * 1e9 + 0.5) as u128;
        let all: u128 = (steps.clone())
            .map(|(length, mbps)| milli_bps(mbps) * nanos(length))
            .sum();
        if all / one > MAX_OPPORTUNITIES as u128 {
            return Err(TraceError::BadSeries(
                "the series of rates makes over 100000000 delivery opportunities; shorten it",
            ));
        }
        let mut at_ms = Vec::with_capacity((all / one) as usize);
        let (mut sent, mut begin) = (0u128, 0u128);
        for (length, mbps) in steps {
            let (length, rate) = (nanos(length), milli_bps(mbps));
            let due = (sent + rate * length) / one;
            for k in 1..=due {
                let at_nanos = begin + (k * one - sent).div_ceil(rate);
                at_ms.push(at_nanos.div_ceil(u128::from(NANOS_PER_MS)) as u32);
            }
            sent = sent + rate * length - due * one;
            begin += length;
        }
        match at_ms.last_mut() {
            Some(last) => *last = length.div_ceil(u128::from(NANOS_PER_MS)) as u32,
            None => {
                return Err(TraceError::BadSeries(
                    "the series of rates carries less than one packet of 1500 bytes; raise a rate or lengthen it",
                ));
            }
        }
        Ok(Trace { at_ms })
    }

    /// The trace in mahimahi's format.
    pub fn to_mahimahi(&self) -> String {
        self.lines(0, self.count())
    }

    /// `count` of its lines in mahimahi's format, after the first `skipped`. The whole text of a
    /// long trace would take more memory than the trace.
    pub fn lines(&self, skipped: usize, count: usize) -> String {
        let some = self.at_ms.iter().skip(skipped).take(count);
        let mut text = String::with_capacity(some.len() * 7);
        for ms in some {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{ms}");
        }
        text
    }

    /// The time of each opportunity, in ms since the trace's beginning: non-decreasing; the last
    /// one is the trace's length.
    pub fn opportunities(&self) -> &[u32] {
        &self.at_ms
    }

    /// The number of opportunities in one pass.
    pub fn count(&self) -> usize {
        self.at_ms.len()
    }

    /// The length of one pass.
    pub fn period(&self) -> Duration {
        Duration::from_millis(self.at_ms.last().map_or(1, |&ms| u64::from(ms)))
    }

    /// The mean rate in Mbit/s, at 1500 bytes an opportunity.
    pub fn mean_mbps(&self) -> f64 {
        mbps(self.count() as u64, self.period())
    }

    /// The mean rate in Mbit/s in each `interval` of one pass, at 1500 bytes an opportunity; the
    /// last interval may be short.
    ///
    /// An opportunity stands for what could be sent up to its time: one at an interval's end counts
    /// in it, and one at 0 in the first. The result is empty if the interval is zero.
    pub fn rates_mbps(&self, interval: Duration) -> Vec<f64> {
        let (period, step) = (self.period().as_nanos(), interval.as_nanos());
        if step == 0 {
            return Vec::new();
        }
        let mut counted = 0;
        (0..period.div_ceil(step))
            .map(|i| {
                let begin = i * step;
                let end = begin.saturating_add(step).min(period);
                let upto = self
                    .at_ms
                    .partition_point(|&ms| u64::from(ms) * NANOS_PER_MS <= end);
                let rate = mbps((upto - counted) as u64, Duration::from_nanos(end - begin));
                counted = upto;
                rate
            })
            .collect()
    }

    /// How many opportunities lie in [`from`, `to`), if the trace begins `offset` in and repeats.
    pub fn opportunities_between(&self, offset: Duration, from: Time, to: Time) -> u64 {
        self.before(to.as_nanos().saturating_add(offset.as_nanos()))
            .saturating_sub(self.before(from.as_nanos().saturating_add(offset.as_nanos())))
    }

    /// How many opportunities come before `nanos` after the beginning of the first pass.
    fn before(&self, nanos: u64) -> u64 {
        let period = self.period().as_nanos();
        let (passes, rest) = (nanos / period, nanos % period);
        let in_pass = |nanos: u64| {
            self.at_ms
                .partition_point(|&ms| u64::from(ms) * NANOS_PER_MS < nanos) as u64
        };
        // At a boundary, the opportunities at the end of the last pass are not counted yet.
        match (passes, rest) {
            (0, _) => in_pass(rest),
            (_, 0) => (passes - 1) * self.count() as u64 + in_pass(period),
            _ => passes * self.count() as u64 + in_pass(rest),
        }
    }
}

fn not_a_time(text: &[u8], line: usize, digits: &[u8]) -> TraceError {
    match looks_like(&text[..text.len().min(HEAD)]) {
        Some(what) => TraceError::Foreign(what),
        None => TraceError::NotATime {
            line,
            text: String::from_utf8_lossy(&digits[..digits.len().min(24)])
                .escape_debug()
                .to_string(),
        },
    }
}

/// The likely meaning of a line that is not a time, from its escaped text: `` or ` (...)`.
fn line_like(text: &str) -> &'static str {
    let number = |word: &str| word.parse::<f64>().is_ok();
    let plain = text.replace("\\t", " ");
    let words: Vec<&str> = plain
        .split([' ', ',', ';'])
        .filter(|w| !w.is_empty())
        .collect();
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if words.is_empty() {
        " (a blank line)"
    } else if text.starts_with("\\u{feff}") {
        " (a byte order mark: save the file as UTF-8 without one)"
    } else if text.contains("\\r") {
        " (lines end in CR alone: end them in LF)"
    } else if text.starts_with("\\u{1a}") {
        " (the end mark of a DOS file: delete it)"
    } else if digits {
        " (this looks like time since 1970: subtract the first time from each)"
    } else if text.starts_with("# mahimahi") || matches!(words[..], [_, "#" | "+" | "-", ..]) {
        " (a log of mahimahi: take the trace that it was run with)"
    } else if text.starts_with(['#', '%']) || text.starts_with("//") {
        " (a comment: take such lines out)"
    } else if words.len() == 1 && text != words[0] && number(words[0]) {
        " (there is a blank or another sign next to it: take it out)"
    } else if words.len() > 1 && (number(words[0]) || text.contains([',', ';'])) {
        " (several columns: `headway traces convert` takes times and rates)"
    } else {
        ""
    }
}

fn parse_ms(digits: &[u8]) -> Option<u32> {
    // `str::parse` alone would accept a leading `+`.
    if !digits.first()?.is_ascii_digit() {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn mbps(opportunities: u64, length: Duration) -> f64 {
    opportunities as f64 * BITS_PER_OPPORTUNITY as f64 / length.as_secs_f64() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(super) fn trace(at_ms: &[u32]) -> Trace {
        Trace {
            at_ms: at_ms.to_vec(),
        }
    }

    #[test]
    fn reads_lf_and_crlf_with_and_without_a_last_newline() {
        for text in ["0\n5\n5\n10\n", "0\r\n5\r\n5\r\n10\r\n", "0\n5\n5\n10"] {
            assert_eq!(Trace::parse(text), Ok(trace(&[0, 5, 5, 10])), "{text:?}");
        }
    }

    #[test]
    fn refusals_name_the_line_and_what_would_be_right() {
        let refused = |text: &str| Trace::parse(text).unwrap_err().to_string();
        let empty = "the trace is empty; it needs a line for each delivery opportunity, in whole milliseconds";
        assert_eq!(refused(""), empty);
        assert_eq!(refused("\n"), empty);
        let range = "is not a time; write whole milliseconds from 0 to 4294967295";
        assert_eq!(
            refused("1\n\n2\n"),
            format!(
                "line 2: '' {}",
                range.replace("time;", "time (a blank line);")
            )
        );
        for (text, says) in [
            ("1 \n", "a blank or another sign next to it"),
            ("2\t\n", "a blank or another sign next to it"),
            ("# from the van\n1\n", "a comment"),
            ("# mahimahi mm-link (down) > log\n", "a log of mahimahi"),
            ("1420 # 1500\n", "a log of mahimahi"),
            ("0.00 4.10\n", "several columns: `headway traces convert`"),
            (
                "time_s,rate_mbps\n0,1\n",
                "several columns: `headway traces convert`",
            ),
            ("<html>\n", "this looks like a web page"),
            ("1\0\n\0", "this looks like UTF-16"),
        ] {
            assert!(refused(text).contains(says), "{text:?}: {}", refused(text));
        }
        assert_eq!(refused("1\n2.5\n"), format!("line 2: '2.5' {range}"));
        assert_eq!(refused("-1\n"), format!("line 1: '-1' {range}"));
        assert_eq!(refused("+1\n"), format!("line 1: '+1' {range}"));
        assert_eq!(
            refused("4294967296"),
            format!(
                "line 1: '4294967296' {}",
                range.replace(
                    "time;",
                    "time (this looks like time since 1970: subtract the first time from each);"
                )
            )
        );
        assert_eq!(
            refused("\u{1b}[0m"),
            format!("line 1: '\\u{{1b}}[0m' {range}")
        );
        assert_eq!(
            refused("3\n7\n6\n"),
            "line 3: 6 ms comes after 7 ms; times must not decrease"
        );
        assert_eq!(
            refused("0\n0\n"),
            "line 2: the last line is 0 ms; it is the trace's length and must be over 0"
        );
    }

    /// Pantheon's 12mbps.trace is one line, `1`: a packet of 1500 bytes a millisecond.
    #[test]
    fn one_line_per_millisecond_is_twelve_megabits() {
        let t = Trace::parse("1\n").unwrap();
        assert_eq!(t.mean_mbps(), 12.0);
        assert_eq!(t.period(), Duration::from_millis(1));
        assert_eq!(
            Trace::from_rates(&[12.0; 4], Duration::from_millis(500))
                .unwrap()
                .opportunities()
                .len(),
            2000
        );
        assert_eq!(
            Trace::from_rates(&[12.0], Duration::from_millis(5))
                .unwrap()
                .opportunities(),
            [1, 2, 3, 4, 5]
        );
    }

    #[test]
    fn the_end_of_a_pass_coincides_with_the_beginning_of_the_next() {
        let t = trace(&[0, 0, 10]);
        let at = |from, to| {
            t.opportunities_between(
                Duration::ZERO,
                Time::from_millis(from),
                Time::from_millis(to),
            )
        };
        assert_eq!(at(0, 10), 2);
        assert_eq!(at(10, 11), 3); // one of the first pass, two of the second
        assert_eq!(at(20, 21), 3);
        assert_eq!(at(0, 31), 11);
        assert_eq!(at(5, 3), 0);
        assert_eq!(
            t.opportunities_between(Duration::from_millis(10), Time::ZERO, Time::from_millis(1)),
            3
        );
    }

    #[test]
    fn impossible_series_are_refused() {
        let s = Duration::from_secs(1);
        let refused =
            |rates: &[f64], interval| Trace::from_rates(rates, interval).unwrap_err().to_string();
        assert_eq!(
            refused(&[1.0, f64::NAN], s),
            "rate 1 of the series is NaN Mbit/s; write finite rates from 0 to 1000000"
        );
        assert!(refused(&[-1.0], s).starts_with("rate 0 of the series is -1 Mbit/s"));
        assert!(refused(&[], s).contains("at least one rate"));
        assert!(refused(&[1.0], Duration::ZERO).contains("an interval over 0"));
        assert!(refused(&[0.0, 0.0], s).contains("less than one packet"));
        assert!(refused(&[1e6; 100], Duration::from_secs(3600)).contains("over 100000000"));
    }

    pub(super) fn traces() -> impl Strategy<Value = Trace> {
        prop::collection::vec(0u32..40, 1..60).prop_map(|mut at_ms| {
            at_ms.push(1);
            at_ms.sort_unstable();
            Trace { at_ms }
        })
    }

    proptest! {
        #[test]
        fn any_bytes_parse_or_are_refused_in_one_line(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Err(e) = Trace::parse(&bytes) {
                prop_assert!(!e.to_string().contains('\n'));
            }
        }

        #[test]
        fn writing_and_reading_gives_the_same_trace(t in traces(), first in 0usize..70) {
            prop_assert_eq!(t.lines(0, first) + &t.lines(first, t.count()), t.to_mahimahi());
            prop_assert_eq!(Trace::parse(t.to_mahimahi()), Ok(t));
        }

        #[test]
        fn counts_equal_those_of_walking_the_passes(
            t in traces(), offset in 0u64..200_000_000, from in 0u64..200_000_000, length in 0u64..200_000_000,
        ) {
            let period = t.period().as_nanos();
            let walked = (0..=600_000_000 / period)
                .flat_map(|pass| t.at_ms.iter().map(move |&ms| pass * period + u64::from(ms) * NANOS_PER_MS))
                .filter(|at| (offset + from..offset + from + length).contains(at))
                .count() as u64;
            let (from, to) = (Time::from_nanos(from), Time::from_nanos(from + length));
            prop_assert_eq!(t.opportunities_between(Duration::from_nanos(offset), from, to), walked);
        }

        #[test]
        fn a_series_keeps_its_length_its_mean_and_its_shape(
            rates in prop::collection::vec(0.0f64..50.0, 1..20), interval_ms in 20u64..1000,
        ) {
            let interval = Duration::from_millis(interval_ms);
            let Ok(t) = Trace::from_rates(&rates, interval) else { return Ok(()) };
            let packet_mbps = 12.0 / interval_ms as f64;
            prop_assert_eq!(t.period(), Duration::from_millis(interval_ms * rates.len() as u64));
            let mean = rates.iter().sum::<f64>() / rates.len() as f64;
            prop_assert!((t.mean_mbps() - mean).abs() <= packet_mbps / rates.len() as f64 + 1e-5);
            // Each interval is exact to the packet that straddles its edge; the last packet was
            // moved to the end.
            let back = t.rates_mbps(interval);
            prop_assert_eq!(back.len(), rates.len());
            for (i, (got, want)) in back.iter().zip(&rates).enumerate() {
                prop_assert!((got - want).abs() <= 2.0 * packet_mbps + 1e-5, "interval {i}: {got} for {want}");
            }
        }
    }
}
