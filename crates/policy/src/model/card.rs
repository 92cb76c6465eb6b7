//! A model's card: what it is, what it sees and does, how it came about.

use std::collections::BTreeMap;

use headway_fixed::Mlp;
use serde::{Deserialize, Serialize};

use super::TrainingRange;
use crate::dqn::DqnSpec;
use crate::int8::compile;
use crate::nn::{NetKind, NetSpec};
use crate::{AgentSpec, Shaping};

/// What `card.toml` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// The version of the card's own keys: [`Card::FORMAT`].
    pub format: u32,
    /// Small letters, digits and hyphens.
    pub name: String,
    /// From 1 on; a model is never changed, its successor has the next number.
    pub version: u32,
    /// One line for people.
    #[serde(default)]
    pub description: String,
    /// The [`AgentSpec::VERSION`] that it was made for.
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
    /// How it came about.
    #[serde(default)]
    pub training: Training,
    /// What was measured of it: tables of any kind.
    #[serde(default)]
    pub evaluation: toml::Table,
}

/// How a model came about. Keys beyond these may be there too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Training {
    /// The command that makes it again.
    pub command: String,
    /// Version and commit of the code that trained it.
    pub code_version: String,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// How long it took, s.
    pub seconds: f64,
    /// The scenarios that it was trained on, each with its canonical hash.
    pub scenarios: BTreeMap<String, String>,
    /// The paths that these scenarios have, where they were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<TrainingRange>,
    /// How it goes on learning in use, where that is not as `config` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub online: Option<DqnSpec>,
    /// All else: the algorithm and its settings, the machine.
    #[serde(flatten)]
    pub more: toml::Table,
}

impl Training {
    /// That its range is one.
    ///
    /// # Errors
    /// One line.
    pub(super) fn check(&self) -> Result<(), String> {
        self.range.map_or(Ok(()), |range| range.check())
    }

    /// How it goes on learning in use: with the discount and the reward of the system's file that
    /// it was trained by (`config`, as `headway train` writes it), so that its values keep their
    /// meaning.
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

    /// Reads a card and checks what can be checked without its other files.
    ///
    /// # Errors
    /// One line, which begins with the line number where that is known.
    pub fn read(text: &str) -> Result<Card, String> {
        let table: toml::Table = toml::from_str(text).map_err(|e| at_line(text, &e))?;
        // Before all else: what another version wrote may have keys that this one does not know.
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

    /// A mask that counts otherwise than the observation would weigh what it should not.
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

    /// Name and version, as its folder is called: `aurora-v1`.
    pub fn title(&self) -> String {
        format!("{}-v{}", self.name, self.version)
    }
}

/// Name and version are what a folder can be called.
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

/// What the TOML reader found, after the number of the line.
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
