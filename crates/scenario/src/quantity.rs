//! Numbers with units as text (`12Mbps`, `20ms`, `150kB`) and ranges of them (`10ms..200ms`, `1Mbps..100Mbps log`).

use headway_cc::{Duration, Stream};
use serde::{Serialize, Serializer};

/// A quantity that a scenario writes: a value, or a range that the seed draws from, uniformly or, if it is
/// logarithmic, uniformly by the logarithm.
///
/// In the dimension's base unit: bit/s, ns, bytes, packets, a probability. Whole numbers are
/// exact, since every limit is below 2^53.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quantity {
    pub low: f64,
    pub high: f64,
    pub log: bool,
    /// Names the component that draws, and with it the random stream. Two quantities of one name are drawn alike.
    pub component: String,
}

impl Quantity {
    pub const ZERO: Quantity = Quantity {
        low: 0.0,
        high: 0.0,
        log: false,
        component: String::new(),
    };

    pub fn fixed(value: f64) -> Quantity {
        Quantity {
            low: value,
            high: value,
            log: false,
            component: String::new(),
        }
    }

    pub fn varies(&self) -> bool {
        self.low < self.high
    }

    pub fn draw(&self, seed: u64) -> f64 {
        self.series(seed).draw()
    }

    /// A whole number, both ends of the range included.
    pub fn draw_whole(&self, seed: u64) -> u64 {
        self.series(seed).draw_whole()
    }

    /// A length of time.
    pub fn duration(&self, seed: u64) -> Duration {
        Duration::from_nanos(self.draw_whole(seed))
    }

    /// Draws again and again; the first is that of [`draw`](Self::draw).
    pub fn series(&self, seed: u64) -> Series {
        Series {
            low: self.low,
            high: self.high,
            log: self.log,
            stream: self.varies().then(|| Stream::new(seed, &self.component)),
        }
    }

    /// The same for the `k`th of several like components: each draws for itself.
    pub fn of(&self, k: u64) -> Quantity {
        let component = if self.varies() {
            format!("{}.{k}", self.component)
        } else {
            String::new()
        };
        Quantity { component, ..*self }
    }
}

/// Values of one quantity in a run, each drawn anew.
#[derive(Debug)]
pub(crate) struct Series {
    low: f64,
    high: f64,
    log: bool,
    /// None where the quantity is fixed.
    stream: Option<Stream>,
}

impl Series {
    pub fn draw(&mut self) -> f64 {
        match &mut self.stream {
            Some(stream) if self.log => {
                let exponent = stream.range(libm::log(self.low), libm::log(self.high));
                libm::exp(exponent).clamp(self.low, self.high)
            }
            Some(stream) => stream.range(self.low, self.high),
            None => self.low,
        }
    }

    /// A whole number, both ends of the range included.
    pub fn draw_whole(&mut self) -> u64 {
        match &mut self.stream {
            Some(_) if self.log => self.draw().round() as u64,
            Some(stream) => self.low as u64 + stream.below((self.high - self.low) as u64 + 1),
            None => self.low as u64,
        }
    }
}

/// A number where it is fixed, else low, high, who draws, and `log` if it does so by the logarithm.
impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match (self.varies(), self.log) {
            (true, false) => (self.low, self.high, &self.component).serialize(to),
            (true, true) => (self.low, self.high, &self.component, "log").serialize(to),
            (false, _) => self.low.serialize(to),
        }
    }
}

/// A kind of quantity: its units, and the values that are possible.
#[derive(Debug)]
pub(crate) struct Dimension {
    /// With its article: "a rate".
    what: &'static str,
    /// Unit and its size in base units.
    units: &'static [(&'static str, f64)],
    example: &'static str,
    range_example: &'static str,
    /// In base units, both included.
    min: f64,
    max: f64,
    /// The limits for people.
    limits: &'static str,
    whole: bool,
}

pub(crate) const RATE: Dimension = Dimension {
    what: "a rate",
    units: &[("bps", 1.0), ("kbps", 1e3), ("Mbps", 1e6), ("Gbps", 1e9)],
    example: "12Mbps",
    range_example: "10Mbps..100Mbps",
    min: 1.0,
    max: 1e13,
    limits: "from 1bps to 10000Gbps",
    whole: true,
};

/// A length of time or an instant, which may be 0.
pub(crate) const TIME: Dimension = Dimension {
    what: "a time",
    units: &[
        ("ns", 1.0),
        ("us", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("min", 60e9),
    ],
    example: "20ms",
    range_example: "10ms..200ms",
    min: 0.0,
    max: 1e15,
    limits: "from 0s to 1000000s",
    whole: true,
};

/// A propagation delay.
pub(crate) const DELAY: Dimension = Dimension {
    max: 3600e9,
    limits: "from 0s to 3600s",
    ..TIME
};

/// A mean length of time, over 0.
pub(crate) const PERIOD: Dimension = Dimension {
    min: 1.0,
    limits: "from 1ns to 1000000s",
    ..TIME
};

/// A length of time between random events, which are not to fill the memory.
pub(crate) const GAP: Dimension = Dimension {
    example: "4s",
    range_example: "1s..50s",
    min: 1e6,
    limits: "from 1ms to 1000000s",
    ..TIME
};

const BYTE_UNITS: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

/// A number of bytes, over 0.
pub(crate) const SIZE: Dimension = Dimension {
    what: "a size",
    units: BYTE_UNITS,
    example: "150kB",
    range_example: "100kB..10MB",
    min: 1.0,
    max: 1e15,
    limits: "from 1B to 1000000GB",
    whole: true,
};

/// The size of one packet.
pub(crate) const PACKET_SIZE: Dimension = Dimension {
    example: "1500B",
    max: 65_535.0,
    limits: "from 1B to 65535B",
    ..SIZE
};

/// A number of packets, over 0.
pub(crate) const PACKETS: Dimension = Dimension {
    what: "a number of packets",
    units: &[("pkt", 1.0)],
    example: "100pkt",
    range_example: "10pkt..100pkt",
    min: 1.0,
    max: 1e9,
    limits: "from 1pkt to 1000000000pkt",
    whole: true,
};

/// A multiple of the bandwidth-delay product, over 0.
pub(crate) const BDP: Dimension = Dimension {
    what: "a multiple of the bandwidth-delay product",
    units: &[("bdp", 1.0)],
    example: "0.5bdp",
    range_example: "0.1bdp..2bdp",
    min: 1e-6,
    max: 1e6,
    limits: "from 0.000001bdp to 1000000bdp",
    whole: false,
};

/// A probability.
pub(crate) const PROBABILITY: Dimension = Dimension {
    what: "a probability",
    units: &[("", 1.0), ("%", 0.01)],
    example: "0.01",
    range_example: "0..0.05",
    min: 0.0,
    max: 1.0,
    limits: "from 0 to 1",
    whole: false,
};

/// How many queues a discipline has.
pub(crate) const QUEUES: Dimension = Dimension {
    what: "a whole number of queues",
    units: &[("", 1.0)],
    example: "1024",
    range_example: "16..1024",
    min: 1.0,
    max: 65_535.0,
    limits: "from 1 to 65535",
    whole: true,
};

/// A factor of a control law.
pub(crate) const GAIN: Dimension = Dimension {
    what: "a gain",
    units: &[("", 1.0)],
    example: "0.4",
    range_example: "0.1..0.5",
    min: 0.0,
    max: 10.0,
    limits: "from 0 to 10",
    whole: false,
};

/// How much a token bucket holds.
pub(crate) const TOKENS: Dimension = Dimension {
    what: "a number of tokens",
    units: &[("", 1.0)],
    example: "5",
    range_example: "2..10",
    min: 1.0,
    max: 1e6,
    limits: "from 1 to 1000000",
    whole: false,
};

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

    /// Checks a bare number, for the dimensions that allow one.
    pub fn number(&self, value: f64) -> Result<f64, String> {
        if (self.min..=self.max).contains(&value) && !(self.whole && value != value.floor()) {
            Ok(value)
        } else {
            Err(format!("{value} is not {} {}", self.what, self.limits))
        }
    }

    /// As an error says what would be right.
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

/// What the user wrote, in quotes, on one line and not too long.
pub(crate) fn quoted(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    let dots = if short.len() < text.len() { "..." } else { "" };
    format!("'{}{dots}'", short.escape_debug())
}

/// A path, in quotes and whole: its end is what tells one from another.
pub(crate) fn quoted_path(path: &str) -> String {
    format!("'{}'", path.escape_debug())
}

#[cfg(test)]
mod tests {
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
    fn draws_lie_in_the_range_reach_both_ends_and_depend_on_the_seed() {
        let packets = PACKETS.read("3pkt..5pkt", "queue").unwrap();
        let mut seen = [0; 3];
        for seed in 0..300 {
            seen[packets.draw_whole(seed) as usize - 3] += 1;
        }
        assert!(seen.iter().all(|&n| (70..130).contains(&n)), "{seen:?}");
        let rate = RATE.read("10Mbps..20Mbps", "rate").unwrap();
        let mean = (0..1000).map(|seed| rate.draw(seed)).sum::<f64>() / 1000.0;
        assert!((mean - 15e6).abs() < 0.3e6, "{mean}"); // sd of the mean: 0.09
        // By the logarithm half of them lie below the geometric mean.
        let wide = RATE.read("1Mbps..100Mbps log", "rate").unwrap();
        let draws = || (0..1000).map(|seed| wide.draw_whole(seed));
        let below = draws().filter(|&rate| rate < 10_000_000).count();
        assert!((450..550).contains(&below), "{below}"); // sd: 16
        assert!(draws().all(|rate| (1_000_000..=100_000_000).contains(&rate)));
        assert_ne!(rate.of(0).draw(1), rate.of(1).draw(1));
        assert_eq!(rate.draw(1), rate.clone().draw(1));
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
