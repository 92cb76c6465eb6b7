//! Everything that decides what a policy sees and does.

use headway_cc::suggest;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{ActionSpec, BeneathSpec, ClockSpec, FEATURES, ObservationSpec};

/// Everything that decides what a policy sees and does; a model's card holds it, with its hash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    /// When it decides.
    pub clock: ClockSpec,
    /// What it sees.
    pub observation: ObservationSpec,
    /// What its answer does.
    pub action: ActionSpec,
    /// What it steers.
    pub beneath: BeneathSpec,
}

impl AgentSpec {
    /// Counts up whenever a feature or an action comes to mean something else, so that no model is misread.
    pub const VERSION: u32 = 1;

    /// That each part can be carried out, and that they fit together.
    ///
    /// # Errors
    /// [`SpecError`], one line.
    pub fn check(&self) -> Result<(), SpecError> {
        self.clock.check()?;
        self.observation.check()?;
        self.action.check()?;
        let (ActionSpec::Discrete { effect, .. } | ActionSpec::Continuous { effect, .. }) =
            &self.action;
        self.beneath.check(effect)
    }

    /// Two specs with the same hash see and do the same: SHA-256 of the version and the spec as JSON, in hex.
    pub fn hash(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        let digest = Sha256::digest(format!("{}\n{text}", AgentSpec::VERSION));
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A spec that cannot be carried out. One line for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(pub String);

impl SpecError {
    pub(crate) fn unknown_feature(name: &str) -> SpecError {
        let known: Vec<&str> = FEATURES.iter().map(|f| f.name).collect();
        SpecError(format!(
            "unknown feature '{name}'; {}",
            suggest(name, known)
        ))
    }
}
