//! The features that a learned controller may observe.

mod rounding;
mod source;
mod table;

use crate::{Interval, NeededStats};

pub use rounding::Rounding;
pub use source::Source;
pub use table::FEATURES;

/// Something that a learned controller may observe: a number of an [`Interval`].
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// As specs and tables call it; its unit is in the name.
    pub name: &'static str,
    /// What it is, in one line.
    pub help: &'static str,
    /// What of a [`Record`](crate::Record) or of the agent it is computed from.
    pub sources: &'static [Source],
    /// How far the kernel's whole numbers may lead away from the simulator's.
    pub rounding: Rounding,
    /// Its value.
    pub value: fn(&Interval) -> f64,
}

impl Feature {
    /// The feature of that name.
    pub fn find(name: &str) -> Option<&'static Feature> {
        FEATURES.iter().find(|f| f.name == name)
    }

    /// Its unit, which its name ends with; empty for a bare number.
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

    /// What has to be folded at every acknowledgement for it.
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
