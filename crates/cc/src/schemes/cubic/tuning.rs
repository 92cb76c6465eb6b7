//! The two parameters of CUBIC that a tuner may change while it runs.

use super::{BETA, C, Cubic, reno_growth};
use crate::{Param, PathModel, Tunable};

/// The parameters that a tuner may change.
pub static TUNABLES: [Param; 2] = [BETA, C];

impl Tunable for Cubic {
    fn tunables(&self) -> &'static [Param] {
        &TUNABLES
    }

    /// A new `beta` counts at once for the growth that Reno would have, and from the next reduction
    /// on for the window. A new `c` counts from the next epoch on.
    fn tune(&mut self, param: &Param, value: f64) {
        let value = param.kind.within(value);
        if param.name == BETA.name {
            self.beta = value;
            self.alpha = reno_growth(value);
        } else if param.name == C.name {
            self.c = value;
        }
    }

    /// CUBIC has no model of its path.
    fn model(&self) -> PathModel {
        PathModel::default()
    }
}
