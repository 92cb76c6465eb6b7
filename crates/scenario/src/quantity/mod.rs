//! Quantities of a scenario: a number with a unit (`12Mbps`, `20ms`, `150kB`), or a range of such
//! numbers from which the seed draws (`10ms..200ms`, `1Mbps..100Mbps log`).

mod dimension;
mod series;
mod table;

use headway_cc::{Duration, Stream};
use serde::{Serialize, Serializer};

pub(crate) use self::dimension::{Dimension, split_unit, without_log};
pub(crate) use self::series::Series;
pub(crate) use self::table::*;

/// A quantity of a scenario: a value, or a range from which the seed draws, uniformly or, if it is
/// logarithmic, uniformly by the logarithm.
///
/// It is in the dimension's base unit: bit/s, ns, bytes, packets, a probability. Whole numbers are
/// exact, since every limit is below 2^53.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quantity {
    pub low: f64,
    pub high: f64,
    pub log: bool,
    /// The name of the component that draws, and so of the random stream. Two quantities with one
    /// name draw the same values.
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

    /// Draws a whole number; both ends of the range are possible.
    pub fn draw_whole(&self, seed: u64) -> u64 {
        self.series(seed).draw_whole()
    }

    /// Draws a length of time.
    pub fn duration(&self, seed: u64) -> Duration {
        Duration::from_nanos(self.draw_whole(seed))
    }

    /// A series of draws; the first is that of [`draw`](Self::draw).
    pub fn series(&self, seed: u64) -> Series {
        let stream = self.varies().then(|| Stream::new(seed, &self.component));
        Series::new(self, stream)
    }

    /// The same quantity for the `k`th of several like components: each draws for itself.
    pub fn of(&self, k: u64) -> Quantity {
        let component = if self.varies() {
            format!("{}.{k}", self.component)
        } else {
            String::new()
        };
        Quantity { component, ..*self }
    }
}

/// A number if it is fixed; else low, high, the component's name, and `log` if it is logarithmic.
impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match (self.varies(), self.log) {
            (true, false) => (self.low, self.high, &self.component).serialize(to),
            (true, true) => (self.low, self.high, &self.component, "log").serialize(to),
            (false, _) => self.low.serialize(to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // By the logarithm, half of the draws lie below the geometric mean.
        let wide = RATE.read("1Mbps..100Mbps log", "rate").unwrap();
        let draws = || (0..1000).map(|seed| wide.draw_whole(seed));
        let below = draws().filter(|&rate| rate < 10_000_000).count();
        assert!((450..550).contains(&below), "{below}"); // sd: 16
        assert!(draws().all(|rate| (1_000_000..=100_000_000).contains(&rate)));
        assert_ne!(rate.of(0).draw(1), rate.of(1).draw(1));
        assert_eq!(rate.draw(1), rate.clone().draw(1));
    }
}
