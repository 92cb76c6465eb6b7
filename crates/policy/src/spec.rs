//! Everything that decides what a policy sees and does.

use headway_cc::suggest;
use serde::{Deserialize, Deserializer, Serialize};

use crate::model::sha256;
use crate::{ActionSpec, Answer, BaseSpec, ClockSpec, FEATURES, ObservationSpec};

/// Everything that decides what a policy sees and does; a model's card holds it, with its hash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    /// When the policy decides.
    pub clock: ClockSpec,
    /// What the policy sees.
    pub observation: ObservationSpec,
    /// What the policy's answer does.
    pub action: ActionSpec,
    /// What the policy steers. Cards of version 1 may have its old name, `beneath`.
    #[serde(alias = "beneath")]
    pub base: BaseSpec,
}

impl AgentSpec {
    /// The version of the format. It counts up whenever the meaning of a feature or an action
    /// changes, so that no model is misread.
    pub const VERSION: u32 = 1;

    /// Checks that each part can be carried out, and that they fit together.
    ///
    /// # Errors
    /// [`SpecError`], one line.
    pub fn check(&self) -> Result<(), SpecError> {
        self.clock.check()?;
        self.observation.check()?;
        self.action.check()?;
        if self.clock.is_chosen() && !matches!(self.action, ActionSpec::Continuous { .. }) {
            return Err(SpecError(
                "clock: chosen intervals go with a continuous action, as both are numbers of one answer"
                    .to_owned(),
            ));
        }
        self.base.check(&self.action)
    }

    /// The number of values of an answer: two if the policy chooses its intervals, else one.
    pub fn answers(&self) -> usize {
        1 + usize::from(self.clock.is_chosen())
    }

    /// The number of outputs of a network: those of the action, then the interval if the policy
    /// chooses it.
    pub fn outputs(&self) -> usize {
        self.action.outputs() + usize::from(self.clock.is_chosen())
    }

    /// Turns a network's outputs into an answer.
    pub fn choose(&self, outputs: &[f32]) -> Answer {
        match (self.clock.is_chosen(), outputs) {
            (true, [action @ .., interval]) => Answer {
                action: self.action.choose(action),
                interval: Some(*interval),
            },
            _ => Answer::from(self.action.choose(outputs)),
        }
    }

    /// Reads a spec from a table of TOML or JSON, and [`check`](Self::check)s it.
    ///
    /// # Errors
    /// [`SpecError`], one line. For an unknown key it names the nearest known one.
    pub fn read<'de, D: Deserializer<'de>>(table: D) -> Result<AgentSpec, SpecError> {
        let spec = AgentSpec::deserialize(table).map_err(|e| SpecError::malformed(&e))?;
        spec.check()?;
        Ok(spec)
    }

    /// The SHA-256, in hex, of the version and the spec as JSON. Two specs with the same hash see
    /// and do the same. The JSON has the old name of the base controller, `beneath`, so that the
    /// models of version 1 keep their hashes.
    pub fn hash(&self) -> String {
        #[derive(Serialize)]
        struct Hashed<'a> {
            clock: &'a ClockSpec,
            observation: &'a ObservationSpec,
            action: &'a ActionSpec,
            beneath: &'a BaseSpec,
        }
        // A new field does not compile until it is hashed, too.
        let AgentSpec {
            clock,
            observation,
            action,
            base: beneath,
        } = self;
        let hashed = Hashed {
            clock,
            observation,
            action,
            beneath,
        };
        let text = serde_json::to_string(&hashed).unwrap_or_default();
        sha256(format!("{}\n{text}", AgentSpec::VERSION).as_bytes())
    }
}

/// A spec that cannot be carried out. The error is one line for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(pub String);

impl SpecError {
    /// The error of serde in one line. For an unknown word it names the nearest known one.
    fn malformed(error: &impl std::fmt::Display) -> SpecError {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        // The JSON is internal, so its position means nothing to the user; TOML files are converted
        // to it.
        let line = line.split(" at line 1 column ").next().unwrap_or_default();
        let (what, known) = line.split_once(", expected ").unwrap_or((line, ""));
        let quoted = |text: &str| -> Vec<String> {
            let every_other = text.split('`').skip(1).step_by(2);
            every_other.map(str::to_owned).collect()
        };
        match (what.starts_with("unknown "), quoted(what).first()) {
            (true, Some(word)) => {
                let known = quoted(known);
                let hint = suggest(word, known.iter().map(String::as_str));
                let kind = if what.starts_with("unknown field") {
                    "key"
                } else {
                    "kind"
                };
                SpecError(format!("agent: unknown {kind} '{word}'; {hint}"))
            }
            _ => SpecError(format!("agent: {line}")),
        }
    }

    pub(crate) fn unknown_feature(name: &str) -> SpecError {
        let known: Vec<&str> = FEATURES.iter().map(|f| f.name).collect();
        SpecError(format!(
            "unknown feature '{name}'; {}",
            suggest(name, known)
        ))
    }
}
