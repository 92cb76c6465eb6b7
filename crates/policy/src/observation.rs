//! A policy's observation: normalised features of the last intervals.

use serde::{Deserialize, Serialize};

use crate::{Feature, Interval, NeededStats, SpecError};

/// A policy's observation at a decision: the `features` of the last `history` intervals, the oldest
/// first. Zeros stand for intervals before the flow's first. With several `rows`, one for each
/// flow, a flow that decides for itself uses the first row, and the others are zero ("BBR tuner"
/// §IV-A).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservationSpec {
    /// The number of intervals, at least 1.
    pub history: usize,
    /// The number of flows, at least 1.
    #[serde(default = "one_row", skip_serializing_if = "is_one")]
    pub rows: usize,
    /// The features of each interval, in this order.
    pub features: Vec<FeatureUse>,
}

/// A feature and its normalisation: `clamp((x - offset) * scale, clip)`, with ln(1 + x) instead of
/// x if `log`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureUse {
    /// The feature's name in [`FEATURES`](crate::FEATURES).
    pub name: String,
    /// Is ln(1 + x) taken first?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub log: bool,
    /// The number that is subtracted.
    #[serde(default)]
    pub offset: f64,
    /// The factor after that.
    #[serde(default = "one")]
    pub scale: f64,
    /// The bounds of the result.
    #[serde(default = "wide")]
    pub clip: [f64; 2],
}

fn one() -> f64 {
    1.0
}

fn one_row() -> usize {
    1
}

fn is_one(rows: &usize) -> bool {
    *rows == 1
}

fn wide() -> [f64; 2] {
    [-1e6, 1e6]
}

impl FeatureUse {
    /// A feature without normalisation, bounded to a million.
    pub fn plain(name: &str) -> FeatureUse {
        FeatureUse {
            name: name.to_owned(),
            log: false,
            offset: 0.0,
            scale: one(),
            clip: wide(),
        }
    }

    fn normalise(&self, value: f64) -> f32 {
        let value = match self.log {
            true => libm::log1p(value.max(0.0)),
            false => value,
        };
        ((value - self.offset) * self.scale).clamp(self.clip[0], self.clip[1]) as f32
    }
}

impl ObservationSpec {
    /// The number of values of an observation.
    pub fn len(&self) -> usize {
        self.rows * self.width()
    }

    /// The number of values of one flow.
    fn width(&self) -> usize {
        self.history * self.features.len()
    }

    /// Always false: [`check`](Self::check) refuses an empty observation.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The statistics that its features need at every acknowledgement.
    pub fn needed_stats(&self) -> NeededStats {
        let features = self.features.iter().filter_map(|f| Feature::find(&f.name));
        features.fold(NeededStats::default(), |all, feature| {
            all.and(feature.needed_stats())
        })
    }

    /// Checks that the observation can be computed. It may have at most a thousand intervals of
    /// every feature.
    ///
    /// # Errors
    /// [`SpecError`]: a feature is unknown, a number is not finite, bounds are in the wrong order,
    /// or there is no feature.
    pub fn check(&self) -> Result<(), SpecError> {
        if self.features.is_empty() || !(1..=1000).contains(&self.history) {
            return Err(SpecError(
                "an observation needs features and a history of 1 to 1000".to_owned(),
            ));
        }
        if !(1..=1000).contains(&self.rows) {
            return Err(SpecError(format!(
                "an observation has {} rows, must have 1 to 1000",
                self.rows
            )));
        }
        for feature in &self.features {
            let FeatureUse {
                name,
                offset,
                scale,
                clip,
                ..
            } = feature;
            Feature::find(name).ok_or_else(|| SpecError::unknown_feature(name))?;
            let finite = [*offset, *scale, clip[0], clip[1]]
                .iter()
                .all(|x| x.is_finite());
            if !finite || clip[0] >= clip[1] {
                return Err(SpecError(format!(
                    "feature '{name}': offset, scale and clip must be finite, and clip from low to high"
                )));
            }
        }
        Ok(())
    }
}

/// The current observation, to which each interval is added.
#[derive(Clone, Debug)]
pub struct Observation {
    features: Vec<(&'static Feature, FeatureUse)>,
    values: Vec<f32>,
    /// The number of values of this flow, which come first.
    own: usize,
}

impl Observation {
    /// The observation of a flow that has just begun.
    ///
    /// # Errors
    /// [`SpecError`] if the spec cannot be computed.
    pub fn new(spec: &ObservationSpec) -> Result<Observation, SpecError> {
        spec.check()?;
        let found = |used: &FeatureUse| Some((Feature::find(&used.name)?, used.clone()));
        Ok(Observation {
            features: spec.features.iter().filter_map(found).collect(),
            values: vec![0.0; spec.len()],
            own: spec.width(),
        })
    }

    /// Adds the newest interval, and drops the oldest.
    pub fn push(&mut self, interval: &Interval) {
        let width = self.features.len();
        let own = &mut self.values[..self.own];
        own.copy_within(width.., 0);
        let newest = &mut own[self.own - width..];
        for (value, (feature, used)) in newest.iter_mut().zip(&self.features) {
            *value = used.normalise((feature.value)(interval));
        }
    }

    /// The values that the policy sees.
    pub fn values(&self) -> &[f32] {
        &self.values
    }
}
