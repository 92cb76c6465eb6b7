//! A learner in a folder: `NAME-vN` with `card.toml` ([`LearnerCard`]) and `learner.txt`
//! ([`Checkpoint`](crate::pal::Checkpoint)). A flow of `rax-pretrained` begins with it and goes on
//! learning.

use std::path::Path;

use headway_cc::Setup;
use serde::{Deserialize, Serialize};

use super::card::{Training, at_line, check_name, version};
use super::{CARD, MAX_CARD, ModelError, check_hash, read};
use crate::nn::NetError;
use crate::schemes::{Rax, RaxCheckpoint, RaxSpec};

/// The file with the learned weights.
pub const LEARNER: &str = "learner.txt";
const MAX_LEARNER: u64 = 16 << 20;

/// The contents of a learner's `card.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearnerCard {
    /// The version of the card's own keys: [`LearnerCard::FORMAT`].
    pub format: u32,
    /// The learner's name in small letters, digits and hyphens.
    pub name: String,
    /// The learner's version, from 1 on.
    pub version: u32,
    /// A description in one line.
    #[serde(default)]
    pub description: String,
    /// The scheme that learned the weights: `rax`.
    pub scheme: String,
    /// SHA-256 of `learner.txt`, in hex.
    pub learner_sha256: String,
    /// How the learner was made.
    #[serde(default)]
    pub training: Training,
    /// Measurements of the learner, as tables of any kind.
    #[serde(default)]
    pub evaluation: toml::Table,
}

impl LearnerCard {
    /// The version of the card's keys that this code reads.
    pub const FORMAT: u32 = 1;

    fn read(text: &str) -> Result<LearnerCard, String> {
        let table: toml::Table = toml::from_str(text).map_err(|e| at_line(text, &e))?;
        version(&table, "format", "format", LearnerCard::FORMAT)?;
        let card: LearnerCard = toml::from_str(text).map_err(|e| at_line(text, &e))?;
        check_name(&card.name, card.version)?;
        card.training.check()?;
        match card.scheme.as_str() {
            "rax" => Ok(card),
            other => Err(format!("scheme is {other:?}, must be \"rax\"")),
        }
    }
}

/// A learner's files, as bytes.
#[derive(Clone, Copy, Debug)]
pub struct LearnerFiles<'a> {
    /// The contents of `card.toml`.
    pub card: &'a [u8],
    /// The contents of `learner.txt`.
    pub learner: &'a [u8],
}

/// A learner that has been checked.
#[derive(Debug)]
pub struct Learner {
    card: LearnerCard,
    rax: Rax,
}

impl Learner {
    /// Reads and checks a folder.
    ///
    /// # Errors
    /// [`ModelError`]: the file, what is wrong with it, what would be right.
    pub fn load(folder: &Path) -> Result<Learner, ModelError> {
        let origin = folder.display().to_string();
        if !folder.is_dir() {
            return Err(ModelError::new(
                &origin,
                "no such folder; give one with a learner's card.toml and learner.txt",
            ));
        }
        let (card, learner) = (
            read(folder, CARD, MAX_CARD)?,
            read(folder, LEARNER, MAX_LEARNER)?,
        );
        let files = LearnerFiles {
            card: &card,
            learner: &learner,
        };
        Learner::read(&origin, files)
    }

    /// Checks a learner's files; `origin` says in errors where they come from.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn read(origin: &str, files: LearnerFiles<'_>) -> Result<Learner, ModelError> {
        let wrong = |name: &str| {
            let file = format!("{origin}/{name}");
            move |what: String| ModelError::new(&file, what)
        };
        let text = |bytes| str::from_utf8(bytes).map_err(|_| "not a text in UTF-8".to_owned());
        let card = text(files.card).and_then(LearnerCard::read);
        let card = card.map_err(wrong(CARD))?;
        check_hash(files.learner, &card.learner_sha256).map_err(wrong(LEARNER))?;
        let learned = text(files.learner).map_err(wrong(LEARNER))?;
        // The flow is only for the check, so any setup will do.
        let any = Setup::new(headway_cc::Bytes::new(1500), 0);
        let rax = Rax::resumed(&any, &RaxSpec::default(), learned);
        let rax = rax.map_err(|e: NetError| wrong(LEARNER)(e.to_string()))?;
        Ok(Learner { card, rax })
    }

    /// The learner's card.
    pub fn card(&self) -> &LearnerCard {
        &self.card
    }

    /// The learner's id in results: name, version, and 12 hex digits of the hash of its weights.
    pub fn id(&self) -> String {
        let LearnerCard { name, version, .. } = &self.card;
        format!("{name}-v{version}@{}", &self.card.learner_sha256[..12])
    }

    /// The number of weights of all networks together.
    pub fn parameters(&self) -> usize {
        self.rax.parameters()
    }

    /// The number of gradients that were applied.
    pub fn updates(&self) -> u64 {
        self.rax.updates()
    }

    /// A flow that begins with these weights, and returns to them whenever it diverges.
    pub fn flow(&self, setup: &Setup, alpha: f32) -> Rax {
        self.rax.begin_flow(setup, alpha)
    }

    /// A flow that begins with what another flow has learned, and with these weights after it
    /// diverges.
    pub(crate) fn continuing(&self, setup: &Setup, spec: &RaxSpec, learned: &RaxCheckpoint) -> Rax {
        Rax::continuing(setup, spec, learned).with_origin(&self.rax)
    }
}
