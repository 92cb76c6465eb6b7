//! Model folders: a trained network with all that is needed to use it, checked before it decides
//! anything.
//!
//! A folder `NAME-vN` holds `card.toml` ([`Card`]), `weights.safetensors` and `golden.npz`
//! ([`Golden`]). Nothing of it is trusted: sizes are bounded, every hash and shape is checked, and
//! the golden observations have to give the golden outputs. What is wrong is said in one line
//! ([`ModelError`]).

mod card;
mod error;
mod golden;
mod learner;
mod policy;
mod range;
mod shipped;
mod taught;
mod weights;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use headway_cc::{CongestionControl, Duration, Setup};
use headway_fixed::Int8;
use sha2::{Digest, Sha256};

pub use card::{Card, Training};
pub use error::ModelError;
pub use golden::Golden;
pub use learner::{LEARNER, Learner, LearnerCard, LearnerFiles};
pub use policy::NetworkPolicy;
pub use range::TrainingRange;
pub use shipped::{Shipped, ShippedLearner, shipped, shipped_learners};
pub(crate) use taught::Taught;

use crate::dqn::DqnPolicy;
use crate::int8::Int8Controller;
use crate::nn::Network;
use crate::{ActionSpec, AgentSpec, ClockSpec, Learned, Limits, Policy, SpecError, Utility};
use policy::Net;

/// The files of a folder.
pub const CARD: &str = "card.toml";
/// The weights' file.
pub const WEIGHTS: &str = "weights.safetensors";
/// The golden outputs' file.
pub const GOLDEN: &str = "golden.npz";

const MAX_CARD: u64 = 1 << 20;
/// The largest network that may be built, and a header.
const MAX_WEIGHTS: u64 = 65 << 20;
const MAX_GOLDEN: u64 = 16 << 20;

/// A model's files, as bytes.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    /// `card.toml`
    pub card: &'a [u8],
    /// `weights.safetensors`
    pub weights: &'a [u8],
    /// `golden.npz`
    pub golden: &'a [u8],
}

/// A model, checked. Cheap to share: each flow's policy has a state of its own, and the network in
/// common.
#[derive(Clone, Debug)]
pub struct Model {
    card: Card,
    agent: Arc<AgentSpec>,
    net: Net,
    golden_rows: usize,
    golden_error: f32,
}

impl Model {
    /// Reads and checks a folder.
    ///
    /// # Errors
    /// [`ModelError`]: the file, what is wrong with it, what would be right.
    pub fn load(folder: &Path) -> Result<Model, ModelError> {
        let origin = folder.display().to_string();
        if !folder.is_dir() {
            return Err(ModelError::new(
                &origin,
                "no such folder; give one with a model's card.toml, or see `headway models`",
            ));
        }
        let read = |name: &str, most: u64| read(folder, name, most);
        let (card, weights, golden) = (
            read(CARD, MAX_CARD)?,
            read(WEIGHTS, MAX_WEIGHTS)?,
            read(GOLDEN, MAX_GOLDEN)?,
        );
        Model::read(
            &origin,
            Files {
                card: &card,
                weights: &weights,
                golden: &golden,
            },
        )
    }

    /// Checks a model's files; `origin` says in errors where they come from.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn read(origin: &str, files: Files<'_>) -> Result<Model, ModelError> {
        let wrong = |name: &str| {
            let file = format!("{origin}/{name}");
            move |what: String| ModelError::new(&file, what)
        };
        let text = str::from_utf8(files.card)
            .map_err(|_| wrong(CARD)("not a text in UTF-8".to_owned()))?;
        let card = Card::read(text).map_err(wrong(CARD))?;
        check_hash(files.weights, &card.weights_sha256).map_err(wrong(WEIGHTS))?;
        check_hash(files.golden, &card.golden_sha256).map_err(wrong(GOLDEN))?;
        let net = weights::net(&card, files.weights).map_err(wrong(WEIGHTS))?;
        let agent = Arc::new(card.agent.clone());
        let golden = Golden::read(files.golden, card.net.inputs(), card.net.outputs())
            .map_err(wrong(GOLDEN))?;
        let mut policy = NetworkPolicy::new(net.clone(), &card.net, Arc::clone(&agent));
        let golden_error = golden.replay(&mut policy).map_err(wrong(GOLDEN))?;
        Ok(Model {
            agent,
            golden_rows: golden.rows(),
            golden_error,
            card,
            net,
        })
    }

    /// What it is.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// Does it see, decide and act as the other does, with a network of the same shape? Then only
    /// the weights may differ, as those of two trainings do.
    pub fn is_like(&self, other: &Model) -> bool {
        self.card.agent_hash == other.card.agent_hash && self.card.net == other.card.net
    }

    /// The same where the clock is replaced before either runs, as scheme `interval` does.
    pub fn is_like_at_any_clock(&self, other: &Model) -> bool {
        let other_clock = self.with_clock(other.agent.clock.clone());
        other_clock.is_ok_and(|own| own.agent == other.agent && own.card.net == other.card.net)
    }

    /// Names it in results: name, version, and 12 hex digits of the hash of all that decides what
    /// it does (network, agent, weights): `aurora-v1@0123456789ab`.
    pub fn id(&self) -> String {
        let Card {
            net,
            agent_hash,
            weights_sha256,
            ..
        } = &self.card;
        let net = serde_json::to_string(net).unwrap_or_default();
        let hash = sha256(format!("{net}\n{agent_hash}\n{weights_sha256}").as_bytes());
        format!("{}@{}", self.card.title(), &hash[..12])
    }

    /// The same network, deciding by another clock; its [`id`](Self::id) stays, as that is what was
    /// trained.
    ///
    /// # Errors
    /// [`SpecError`], one line: the clock cannot be kept, the network has an output too many or too
    /// few for it, or is one of whole numbers.
    pub fn with_clock(&self, clock: ClockSpec) -> Result<Model, SpecError> {
        if self.int8().is_some() {
            return Err(SpecError(
                "clock: a network of whole numbers has the one that its program was written with"
                    .to_owned(),
            ));
        }
        if clock.is_chosen() != self.agent.clock.is_chosen() {
            return Err(SpecError(
                "clock: a network that chooses its intervals keeps to that, and no other can"
                    .to_owned(),
            ));
        }
        let mut model = self.clone();
        model.card.agent.clock = clock;
        model.card.agent.check()?;
        model.agent = Arc::new(model.card.agent.clone());
        Ok(model)
    }

    /// How many parameters the network has.
    pub fn parameters(&self) -> usize {
        let size = |(_, shape): &(String, Vec<usize>)| shape.iter().product::<usize>();
        self.card.net.tensors().iter().map(size).sum()
    }

    /// How many golden rows were replayed, and the largest difference of an output.
    pub fn golden(&self) -> (usize, f32) {
        (self.golden_rows, self.golden_error)
    }

    /// What decides for one flow.
    pub fn policy(&self) -> NetworkPolicy {
        NetworkPolicy::new(self.net.clone(), &self.card.net, Arc::clone(&self.agent))
    }

    /// What the kernel's program evaluates, if the network is one of whole numbers.
    pub fn int8(&self) -> Option<&Int8> {
        match &self.net {
            Net::Float(_) => None,
            Net::Int8(policy) => Some(policy.policy()),
        }
    }

    /// What decides for one flow and goes on learning as the card says ([`Training::online`]):
    /// rewarded with Owl's [`Utility`] of these weights, `delta` and `beta`, and with a share
    /// `epsilon` of random actions.
    ///
    /// # Errors
    /// [`SpecError`], one line: the network is recurrent, or the actions are none to choose from.
    pub fn learning_policy(
        &self,
        setup: &Setup,
        [delta, beta]: [f64; 2],
        epsilon: f64,
    ) -> Result<DqnPolicy, SpecError> {
        if let ActionSpec::Continuous { .. } = self.agent.action {
            return Err(SpecError(
                "online learning: the action is continuous, must be one of several choices"
                    .to_owned(),
            ));
        }
        let Net::Float(network) = &self.net else {
            return Err(SpecError(
                "online learning: the network is of whole numbers, must be one of floating point"
                    .to_owned(),
            ));
        };
        let network = Network::clone(network);
        let spec = self.card.training.online();
        let utility = Utility {
            delta,
            beta,
            shaping: spec.reward,
        };
        DqnPolicy::new(network, spec, utility, epsilon, setup).map_err(|e| SpecError(e.to_string()))
    }

    /// The controller of one flow as the model is deployed: one of whole numbers is its own, as in
    /// the kernel. An answer takes effect `latency` after its observation. With limits a guard
    /// watches it.
    ///
    /// # Errors
    /// None for a model that was loaded: its agent is checked.
    pub fn deployed(
        &self,
        setup: &Setup,
        latency: Duration,
        guard: Option<Limits>,
    ) -> Result<Box<dyn CongestionControl>, SpecError> {
        Ok(match &self.net {
            Net::Float(_) => {
                let controller = self.controller(setup, self.policy(), latency)?;
                match guard {
                    Some(limits) => Box::new(controller.guarded(limits)),
                    None => Box::new(controller),
                }
            }
            Net::Int8(policy) => {
                let controller = Int8Controller::new(Arc::clone(policy), setup, latency);
                match guard {
                    Some(limits) => Box::new(controller.guarded(limits)),
                    None => Box::new(controller),
                }
            }
        })
    }

    /// The controller of one flow, which `policy` decides for; an answer takes effect `latency`
    /// after its observation.
    ///
    /// # Errors
    /// None for a model that was loaded: its agent is checked.
    pub fn controller<P: Policy>(
        &self,
        setup: &Setup,
        policy: P,
        latency: Duration,
    ) -> Result<Learned<P>, SpecError> {
        Learned::new(Arc::clone(&self.agent), setup, policy, latency)
    }
}

/// SHA-256 in hex, as a card has it.
pub fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn check_hash(bytes: &[u8], wanted: &str) -> Result<(), String> {
    let found = sha256(bytes);
    if found == wanted {
        return Ok(());
    }
    Err(format!(
        "its SHA-256 is {}..., card.toml says {}...: truncated, or changed; copy the whole folder again",
        &found[..12],
        wanted.chars().take(12).collect::<String>().escape_debug()
    ))
}

/// A file of at most this number of bytes.
fn read(folder: &Path, name: &str, most: u64) -> Result<Vec<u8>, ModelError> {
    let path = folder.join(name);
    let wrong = |what: String| ModelError::new(&path.display().to_string(), what);
    // Opening a pipe would wait for its writer.
    let kind = std::fs::metadata(&path).map_err(|e| wrong(format!("cannot be read: {e}")))?;
    if !kind.is_file() {
        return Err(wrong("not a file".to_owned()));
    }
    let mut bytes = Vec::new();
    let file = File::open(&path).map_err(|e| wrong(format!("cannot be read: {e}")))?;
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| wrong(format!("cannot be read: {e}")))?;
    match bytes.len() as u64 > most {
        true => Err(wrong(format!("longer than {most} bytes"))),
        false => Ok(bytes),
    }
}
