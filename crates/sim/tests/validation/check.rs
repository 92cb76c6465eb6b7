//! Compares a figure of ours with one from outside. `docs/schemes.md` lists these for every scheme.

use std::fmt;

/// One figure of one scheme, compared with an outside one.
#[derive(Debug)]
pub struct Check<'a> {
    /// The scheme, as on a command line.
    pub scheme: &'a str,
    /// The figure, and its run: "Verizon-LTE-short, p95 queueing delay".
    pub what: &'a str,
    /// The figure's unit; empty for a share.
    pub unit: &'a str,
    /// The source of the outside figure.
    pub source: &'a str,
    /// The outside figure.
    pub outside: Outside,
    /// Our figure.
    pub ours: f64,
}

/// The expected figure.
#[derive(Clone, Copy, Debug)]
pub enum Outside {
    /// A figure, and the tolerance in percent of it.
    Percent(f64, f64),
    /// A figure, and the tolerance as a difference.
    Difference(f64, f64),
    /// A range, including its ends.
    Between(f64, f64),
}

impl Outside {
    fn is_met(self, ours: f64) -> bool {
        self.off(ours).abs() <= 1.0
    }

    /// How far `ours` is from the middle, in units of the tolerance: beyond 1 and -1 it is missed.
    /// In a range without one end, it is how far `ours` exceeds the other, 0 within.
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
    /// Checks that the figure is met.
    ///
    /// # Panics
    /// If it is missed.
    #[track_caller]
    pub fn holds(self) {
        self.print("");
        self.judge("");
    }

    /// Checks that the figure is missed because of `reason`, which the documentation repeats.
    ///
    /// # Panics
    /// If it is met: then the reason is no longer true.
    #[track_caller]
    pub fn misses_because(self, reason: &str) {
        assert!(!reason.is_empty(), "{self:?}: why?");
        self.print(reason);
        self.judge(reason);
    }

    /// With a reason the figure has to be missed, without one it has to be met.
    #[track_caller]
    fn judge(&self, reason: &str) {
        let is_met = self.outside.is_met(self.ours);
        assert!(is_met || !reason.is_empty(), "{self:?}");
        assert!(
            !is_met || reason.is_empty(),
            "{self:?} is met now: say so, there is no need of '{reason}'"
        );
    }

    /// Prints one line of JSON for `benches/accuracy.py`.
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
