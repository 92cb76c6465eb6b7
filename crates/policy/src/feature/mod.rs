//! The features that a learned controller may observe.

mod rounding;
mod source;
mod table;

use crate::{Interval, NeededStats};

pub use rounding::Rounding;
pub use source::Source;
pub use table::FEATURES;

/// A number of an [`Interval`] that a learned controller may observe.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// Its name in specs and tables, with the unit at the end.
    pub name: &'static str,
    /// A description in one line.
    pub help: &'static str,
    /// The parts of a [`Record`](crate::Record), or of the agent, from which it is computed.
    pub sources: &'static [Source],
    /// How much the kernel's whole numbers can change it, compared with the simulator.
    pub rounding: Rounding,
    /// Computes the value.
    pub value: fn(&Interval) -> f64,
}

impl Feature {
    /// The feature of that name.
    pub fn find(name: &str) -> Option<&'static Feature> {
        FEATURES.iter().find(|f| f.name == name)
    }

    /// The unit, with which the name ends; empty for a bare number.
    pub fn unit(&self) -> &'static str {
        match self.name.rsplit('_').next() {
            Some("s") => "s",
            Some("ms") => "ms",
            Some("mbps") => "Mbit/s",
            Some("packets") => "packets",
            Some("bytes") => "bytes",
            _ => "",
        }
    }

    /// What it needs each acknowledgement to update.
    pub(crate) fn needed_stats(&self) -> NeededStats {
        NeededStats {
            averages: self.sources.contains(&Source::Averages),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (i, feature) in FEATURES.iter().enumerate() {
            assert!(FEATURES[..i].iter().all(|f| f.name != feature.name));
        }
    }
}
