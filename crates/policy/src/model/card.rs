//! A model's card: what the model is, what it sees and does, and how it was made.

use std::collections::BTreeMap;

use headway_fixed::Mlp;
use serde::{Deserialize, Serialize};

use super::TrainingRange;
use crate::dqn::DqnSpec;
use crate::int8::compile;
use crate::nn::{NetKind, NetSpec};
use crate::{AgentSpec, Shaping};

/// The contents of `card.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// The version of the card's own keys: [`Card::FORMAT`].
    pub format: u32,
    /// The model's name in small letters, digits and hyphens.
    pub name: String,
    /// The model's version, from 1 on. A model never changes; its successor has the next number.
    pub version: u32,
    /// A description in one line.
    #[serde(default)]
    pub description: String,
    /// The [`AgentSpec::VERSION`] for which the model was made.
    pub spec_version: u32,
    /// [`AgentSpec::hash`] of `agent`.
    pub agent_hash: String,
    /// SHA-256 of `weights.safetensors`, in hex.
    pub weights_sha256: String,
    /// SHA-256 of `golden.npz`, in hex.
    pub golden_sha256: String,
    /// The network.
    pub net: NetSpec,
    /// What it sees, when it decides, what its answers do.
    pub agent: AgentSpec,
    /// How the model was made.
    #[serde(default)]
    pub training: Training,
    /// Measurements of the model, as tables of any kind.
    #[serde(default)]
    pub evaluation: toml::Table,
}

/// How a model was made. Other keys are allowed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Training {
    /// The command that trains it again.
    pub command: String,
    /// Version and commit of the code that trained it.
    pub code_version: String,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The duration of the training, in seconds.
    pub seconds: f64,
    /// The training scenarios, each with its canonical hash.
    pub scenarios: BTreeMap<String, String>,
    /// The measured range of the scenarios' paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<TrainingRange>,
    /// The settings of learning in use. If there are any, those of `config` do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub online: Option<DqnSpec>,
    /// Everything else: the algorithm and its settings, the machine.
    #[serde(flatten)]
    pub more: toml::Table,
}

impl Training {
    /// Checks the training range.
    ///
    /// # Errors
    /// One line.
    pub(super) fn check(&self) -> Result<(), String> {
        self.range.map_or(Ok(()), |range| range.check())
    }

    /// The settings of learning in use. Discount and reward are those of the training's system file
    /// (`config`, as `headway train` writes it), so that values keep their meaning.
    pub fn online(&self) -> DqnSpec {
        if let Some(online) = &self.online {
            return online.clone();
        }
        let text = self.more.get("config").and_then(toml::Value::as_str);
        let config: toml::Table = text.and_then(|t| t.parse().ok()).unwrap_or_default();
        let number = |section: &str, key: &str| match config.get(section)?.get(key)? {
            toml::Value::Float(number) => Some(*number),
            toml::Value::Integer(number) => Some(*number as f64),
            _ => None,
        };
        let (usual, plain) = (DqnSpec::default(), Shaping::default());
        DqnSpec {
            gamma: number("dqn", "gamma").unwrap_or(usual.gamma),
            reward: Shaping {
                scale: number("reward", "scale").unwrap_or(plain.scale),
                exponent: number("reward", "exponent").unwrap_or(plain.exponent),
                regret: number("reward", "regret").unwrap_or(plain.regret),
            },
            ..usual
        }
    }
}

impl Card {
    /// The version of the card's keys that this code reads.
    pub const FORMAT: u32 = 1;

    /// Reads a card, and checks everything that needs no other file.
    ///
    /// # Errors
    /// One line. It begins with the line number where that is known.
    pub fn read(text: &str) -> Result<Card, String> {
        let table: toml::Table = toml::from_str(text).map_err(|e| at_line(text, &e))?;
        // The version comes first, since a card of another version may have unknown keys.
        version(&table, "format", "format", Card::FORMAT)?;
        version(
            &table,
            "spec_version",
            "features and actions of version",
            AgentSpec::VERSION,
        )?;
        let card: Card = toml::from_str(text).map_err(|e| at_line(text, &e))?;
        card.check()?;
        Ok(card)
    }

    fn check(&self) -> Result<(), String> {
        check_name(&self.name, self.version)?;
        self.net.check().map_err(|e| e.to_string())?;
        self.agent.check().map_err(|e| format!("agent: {e}"))?;
        let hash = self.agent.hash();
        if self.agent_hash != hash {
            return Err(format!(
                "agent_hash is {:?}, but [agent] hashes to {hash}: it was changed after training; take the model that was trained, or train again",
                self.agent_hash
            ));
        }
        let (seen, inputs) = (self.agent.observation.len(), self.net.inputs());
        if seen != inputs {
            return Err(format!(
                "an observation has {seen} numbers ([agent.observation]), but [net] takes {inputs}; they must be the same"
            ));
        }
        self.check_mask()?;
        self.training.check()?;
        if self.net.kind == NetKind::Int8 {
            compile(&self.agent, Mlp::default()).map_err(|e| format!("agent: {e}"))?;
        }
        let online = self.training.online();
        online
            .check()
            .map_err(|e| format!("training.online: {e}"))?;
        let (wanted, outputs) = (self.agent.outputs(), self.net.outputs());
        if wanted != outputs {
            return Err(format!(
                "the action needs {wanted} outputs ([agent.action]), but [net] has {outputs}; they must be the same"
            ));
        }
        Ok(())
    }

    /// A mask for another number of features would scale the wrong inputs.
    fn check_mask(&self) -> Result<(), String> {
        let Some(mask) = &self.net.mask else {
            return Ok(());
        };
        let features = &self.agent.observation.features;
        if mask.features != features.len() {
            return Err(format!(
                "net.mask: features is {}, but an interval has {} ([agent.observation]); they must be the same",
                mask.features,
                features.len()
            ));
        }
        let known = &features[mask.known];
        if known.name != "network_known" || known.offset != 0.0 || known.scale <= 0.0 {
            return Err(format!(
                "net.mask: known is {}, which is {}; must be the index of network_known, with offset 0 and a scale above 0",
                mask.known, known.name
            ));
        }
        Ok(())
    }

    /// Name and version, as in the folder's name: `aurora-v1`.
    pub fn title(&self) -> String {
        format!("{}-v{}", self.name, self.version)
    }
}

/// Checks that name and version can name a folder.
pub(super) fn check_name(name: &str, version: u32) -> Result<(), String> {
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !(1..=64).contains(&name.len()) || !name.chars().all(letters) {
        return Err(format!(
            "name is {name:?}, must be 1 to 64 small letters, digits and hyphens"
        ));
    }
    if version == 0 {
        return Err("version is 0, must be 1 or more".to_owned());
    }
    Ok(())
}

pub(super) fn version(table: &toml::Table, key: &str, what: &str, ours: u32) -> Result<(), String> {
    match table.get(key) {
        Some(toml::Value::Integer(found)) if *found == i64::from(ours) => Ok(()),
        Some(toml::Value::Integer(found)) => Err(format!(
            "{key} is {found}, this headway reads {what} {ours}; take a model made for it, or another headway"
        )),
        Some(other) => Err(format!("{key} is {other}, must be {ours}")),
        None => Err(format!("{key} is missing, must be {ours}")),
    }
}

/// The TOML reader's error, with the line number in front.
pub(super) fn at_line(text: &str, error: &toml::de::Error) -> String {
    let line = |span: std::ops::Range<usize>| {
        let before = text.get(..span.start).unwrap_or(text);
        1 + before.matches('\n').count()
    };
    match error.span() {
        Some(span) => format!("line {}: {}", line(span), error.message()),
        None => error.message().to_owned(),
    }
}
