//! A figure of ours compared with one from outside: what `docs/schemes.md` lists for every scheme.

use std::fmt;

/// One figure of one scheme, held against the outside.
#[derive(Debug)]
pub struct Check<'a> {
    /// The scheme, as one would write it.
    pub scheme: &'a str,
    /// Which figure, and of what run: "Verizon-LTE-short, p95 queueing delay".
    pub what: &'a str,
    /// Its unit; empty for a share.
    pub unit: &'a str,
    /// Who says what it should be.
    pub source: &'a str,
    /// What it should be.
    pub outside: Outside,
    /// What it is.
    pub ours: f64,
}

/// What a figure should be.
#[derive(Clone, Copy, Debug)]
pub enum Outside {
    /// A figure, met to this many percent of it.
    Percent(f64, f64),
    /// A figure, met to such a difference.
    Difference(f64, f64),
    /// A range with its ends.
    Between(f64, f64),
}

impl Outside {
    fn is_met(self, ours: f64) -> bool {
        self.off(ours).abs() <= 1.0
    }

    /// How far off the middle `ours` is, in units of what is allowed: beyond 1 and -1 it is missed.
    /// In a range without one end, how far beyond the other it is, 0 within.
    fn off(self, ours: f64) -> f64 {
        let beyond = |end: f64, by: f64| match by <= 0.0 {
            true => 0.0,
            false => by.signum() + by / end.abs().max(f64::MIN_POSITIVE),
        };
        match self {
            _ if ours.is_nan() => f64::MAX,
            Outside::Percent(figure, percent) => (ours / figure - 1.0) * 100.0 / percent,
            Outside::Difference(figure, most) => (ours - figure) / most,
            Outside::Between(f64::NEG_INFINITY, most) => beyond(most, ours - most),
            Outside::Between(least, f64::INFINITY) => -beyond(least, least - ours),
            Outside::Between(least, most) => (2.0 * ours - least - most) / (most - least),
        }
    }
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outside::Percent(figure, percent) => write!(f, "{figure} +- {percent}%"),
            Outside::Difference(figure, most) => write!(f, "{figure} +- {most}"),
            Outside::Between(least, most) if *most == f64::INFINITY => write!(f, "{least} or more"),
            Outside::Between(least, most) if *least == f64::NEG_INFINITY => {
                write!(f, "{most} or less")
            }
            Outside::Between(least, most) => write!(f, "{least} to {most}"),
        }
    }
}

impl Check<'_> {
    /// The figure is as it should be.
    ///
    /// # Panics
    /// If it is not.
    #[track_caller]
    pub fn holds(self) {
        self.print("");
        self.judge("");
    }

    /// The figure is not as it should be, because of `reason`, which the documentation repeats.
    ///
    /// # Panics
    /// If it is: then the reason is no longer true.
    #[track_caller]
    pub fn misses_because(self, reason: &str) {
        assert!(!reason.is_empty(), "{self:?}: why?");
        self.print(reason);
        self.judge(reason);
    }

    /// A figure with a reason is missed, one without is met.
    #[track_caller]
    fn judge(&self, reason: &str) {
        let is_met = self.outside.is_met(self.ours);
        assert!(is_met || !reason.is_empty(), "{self:?}");
        assert!(
            !is_met || reason.is_empty(),
            "{self:?} is met now: say so, there is no need of '{reason}'"
        );
    }

    /// One line of JSON for `benches/accuracy.py`.
    fn print(&self, reason: &str) {
        println!(
            "check {{\"scheme\": {:?}, \"what\": {:?}, \"unit\": {:?}, \"source\": {:?}, \"outside\": {:?}, \
             \"ours\": {:.4}, \"off\": {:.3}, \"missed\": {reason:?}}}",
            self.scheme,
            self.what,
            self.unit,
            self.source,
            self.outside.to_string(),
            self.ours,
            self.outside.off(self.ours).clamp(-1e9, 1e9),
        );
    }
}

#[test]
fn a_check_can_fail() {
    let check = |outside, ours| Check {
        scheme: "none",
        what: "a figure",
        unit: "",
        source: "the test",
        outside,
        ours,
    };
    let fails = |outside, ours, reason: &str| {
        std::panic::catch_unwind(|| check(outside, ours).judge(reason)).is_err()
    };
    for (outside, good, bad) in [
        (Outside::Percent(10.0, 5.0), 10.4, 10.6),
        (Outside::Difference(0.9, 0.05), 0.86, 0.84),
        (Outside::Between(2.0, 4.0), 4.0, 4.1),
        (Outside::Between(2.0, 4.0), 2.0, f64::NAN),
        (Outside::Between(f64::NEG_INFINITY, 0.0), 0.0, 0.1),
        (Outside::Between(0.9, f64::INFINITY), 5.0, 0.89),
    ] {
        assert!(!fails(outside, good, "") && fails(outside, good, "a reason"));
        assert!(fails(outside, bad, "") && !fails(outside, bad, "a reason"));
    }
}
