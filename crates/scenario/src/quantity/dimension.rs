//! Reads and checks the text of a quantity.

use super::Quantity;
use crate::error::quoted;

/// A kind of quantity: its units, and its possible values.
#[derive(Debug)]
pub(crate) struct Dimension {
    /// The name with its article: "a rate".
    pub(super) what: &'static str,
    /// Each unit and its size in base units.
    pub(super) units: &'static [(&'static str, f64)],
    pub(super) example: &'static str,
    pub(super) range_example: &'static str,
    /// The limits in base units, both included.
    pub(super) min: f64,
    pub(super) max: f64,
    /// The limits, for people.
    pub(super) limits: &'static str,
    pub(super) whole: bool,
}

impl Dimension {
    /// Reads a value or a range. The error says what is wrong and what would be right.
    pub fn read(&self, text: &str, component: &str) -> Result<Quantity, String> {
        let log = text.contains("..") && without_log(text) != text;
        let (low, high) = match text.split_once("..") {
            Some((low, high)) => (self.value(low)?, self.value(without_log(high))?),
            None => {
                let value = self.value(text)?;
                (value, value)
            }
        };
        if log && low <= 0.0 {
            return Err(format!(
                "the range {} is logarithmic; write a smaller value above 0",
                quoted(text)
            ));
        }
        if low > high {
            return Err(format!(
                "the range {} is reversed; write the smaller value first",
                quoted(text)
            ));
        }
        Ok(Quantity {
            low,
            high,
            log,
            component: component.to_owned(),
        })
    }

    /// Checks a bare number, for dimensions that allow one.
    pub fn number(&self, value: f64) -> Result<f64, String> {
        if (self.min..=self.max).contains(&value) && !(self.whole && value != value.floor()) {
            Ok(value)
        } else {
            Err(format!("{value} is not {} {}", self.what, self.limits))
        }
    }

    /// The expected text, for errors.
    pub fn wanted(&self) -> String {
        format!(
            "{} such as \"{}\" or a range such as \"{}\"",
            self.what, self.example, self.range_example
        )
    }

    fn value(&self, text: &str) -> Result<f64, String> {
        let text = text.trim();
        let (number, unit) = split_unit(text);
        let scale = self
            .units
            .iter()
            .find(|(u, _)| *u == unit)
            .map(|(_, scale)| *scale);
        let (Ok(number), Some(scale)) = (number.parse::<f64>(), scale) else {
            return Err(format!(
                "{} is not {}; write for example \"{}\"{}",
                quoted(text),
                self.what,
                self.example,
                self.unit_list()
            ));
        };
        let value = if self.whole {
            (number * scale).round()
        } else {
            number * scale
        };
        if (self.min..=self.max).contains(&value) {
            Ok(value)
        } else {
            Err(format!(
                "{} is not {} {}",
                quoted(text),
                self.what,
                self.limits
            ))
        }
    }

    fn unit_list(&self) -> String {
        let units: Vec<&str> = self
            .units
            .iter()
            .map(|(u, _)| *u)
            .filter(|u| !u.is_empty())
            .collect();
        match units.len() {
            0 | 1 => String::new(),
            _ => format!(" (units: {})", units.join(", ")),
        }
    }
}

/// A range without the word that makes it logarithmic.
pub(crate) fn without_log(text: &str) -> &str {
    text.strip_suffix(" log").unwrap_or(text)
}

/// Splits `12.5 Mbps` into `12.5` and `Mbps`.
pub(crate) fn split_unit(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))
        .unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

#[cfg(test)]
mod tests {
    use super::super::{BDP, DELAY, PACKETS, PROBABILITY, RATE, SIZE, TIME};
    use super::*;

    fn read(dimension: &Dimension, text: &str) -> (f64, f64) {
        let q = dimension.read(text, "test").unwrap();
        (q.low, q.high)
    }

    #[test]
    fn spellings_of_one_value_agree() {
        for text in ["12Mbps", "12000kbps", "0.012Gbps", "12 Mbps", "12000000bps"] {
            assert_eq!(read(&RATE, text), (12e6, 12e6), "{text}");
        }
        for text in ["20ms", "0.02s", "20000us", "20ms..20000us"] {
            assert_eq!(read(&TIME, text), (20e6, 20e6), "{text}");
        }
        assert_eq!(read(&SIZE, "150kB"), read(&SIZE, "150000B"));
        assert_eq!(read(&PROBABILITY, "1%"), read(&PROBABILITY, "0.01"));
        assert_eq!(read(&TIME, "10ms .. 0.2s"), (10e6, 200e6));
    }

    #[test]
    fn impossible_values_are_refused() {
        for (dimension, text, why) in [
            (
                &RATE,
                "fast",
                "'fast' is not a rate; write for example \"12Mbps\" (units: bps, kbps, Mbps, Gbps)",
            ),
            (
                &RATE,
                "12mbps",
                "'12mbps' is not a rate; write for example \"12Mbps\" (units: bps, kbps, Mbps, Gbps)",
            ),
            (
                &RATE,
                "0Mbps",
                "'0Mbps' is not a rate from 1bps to 10000Gbps",
            ),
            (
                &RATE,
                "-1Mbps",
                "'-1Mbps' is not a rate from 1bps to 10000Gbps",
            ),
            (
                &RATE,
                "NaN",
                "'NaN' is not a rate; write for example \"12Mbps\" (units: bps, kbps, Mbps, Gbps)",
            ),
            (
                &TIME,
                "20",
                "'20' is not a time; write for example \"20ms\" (units: ns, us, ms, s, min)",
            ),
            (
                &DELAY,
                "2..s",
                "'2' is not a time; write for example \"20ms\" (units: ns, us, ms, s, min)",
            ),
            (
                &DELAY,
                "200ms..10ms",
                "the range '200ms..10ms' is reversed; write the smaller value first",
            ),
            (
                &PROBABILITY,
                "0..0.05 log",
                "the range '0..0.05 log' is logarithmic; write a smaller value above 0",
            ),
            (
                &PROBABILITY,
                "1.5",
                "'1.5' is not a probability from 0 to 1",
            ),
            (
                &PACKETS,
                "0.2pkt",
                "'0.2pkt' is not a number of packets from 1pkt to 1000000000pkt",
            ),
            (
                &BDP,
                "0bdp",
                "'0bdp' is not a multiple of the bandwidth-delay product from 0.000001bdp to 1000000bdp",
            ),
        ] {
            assert_eq!(dimension.read(text, "test").unwrap_err(), why);
        }
    }
}
