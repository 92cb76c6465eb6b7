//! Model folders: a trained network with all that it needs, checked before it decides anything.
//!
//! A folder `NAME-vN` holds `card.toml` ([`Card`]), `weights.safetensors` and `golden.npz`
//! ([`Golden`]). The loader trusts none of it: it bounds sizes, checks every hash and shape, and
//! compares the outputs for the golden observations. Errors are one line ([`ModelError`]).

mod card;
mod error;
mod golden;
mod learner;
mod policy;
mod range;
mod saved_network;
mod shipped;
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
pub(crate) use saved_network::SavedNetwork;
pub use shipped::{Shipped, ShippedLearner, shipped, shipped_learners};

use crate::dqn::DqnPolicy;
use crate::int8::Int8Controller;
use crate::nn::Network;
use crate::{ActionSpec, AgentSpec, ClockSpec, Learned, Limits, Policy, SpecError, Utility};
use policy::Net;

/// The card's file.
pub const CARD: &str = "card.toml";
/// The weights' file.
pub const WEIGHTS: &str = "weights.safetensors";
/// The golden outputs' file.
pub const GOLDEN: &str = "golden.npz";

const MAX_CARD: u64 = 1 << 20;
/// The size of the largest network's file, with its header.
const MAX_WEIGHTS: u64 = 65 << 20;
const MAX_GOLDEN: u64 = 16 << 20;

/// A model's files, as bytes.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    /// The contents of `card.toml`.
    pub card: &'a [u8],
    /// The contents of `weights.safetensors`.
    pub weights: &'a [u8],
    /// The contents of `golden.npz`.
    pub golden: &'a [u8],
}

/// A model that has been checked. A clone is cheap, since all flows share the network; each flow's
/// policy has its own state.
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

    /// The model's card.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// Do both models see, decide and act alike, with networks of the same shape? Then only their
    /// weights differ, as those of two trainings do.
    pub fn is_like(&self, other: &Model) -> bool {
        self.card.agent_hash == other.card.agent_hash && self.card.net == other.card.net
    }

    /// As [`is_like`](Self::is_like), but for models whose clock is replaced before they run, as
    /// scheme `interval` does.
    pub fn is_like_at_any_clock(&self, other: &Model) -> bool {
        let other_clock = self.with_clock(other.agent.clock.clone());
        other_clock.is_ok_and(|own| own.agent == other.agent && own.card.net == other.card.net)
    }

    /// The model's id in results: name, version, and 12 hex digits of the hash of all that decides
    /// what it does (network, agent, weights): `aurora-v1@0123456789ab`.
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

    /// The same network with another clock. Its [`id`](Self::id) stays, since the trained network
    /// is the same.
    ///
    /// # Errors
    /// [`SpecError`], one line: the clock cannot run, the network has too many or too few outputs
    /// for it, or the network is one of whole numbers.
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

    /// The number of the network's parameters.
    pub fn parameters(&self) -> usize {
        let size = |(_, shape): &(String, Vec<usize>)| shape.iter().product::<usize>();
        self.card.net.tensors().iter().map(size).sum()
    }

    /// The number of golden rows, and the largest difference of an output.
    pub fn golden(&self) -> (usize, f32) {
        (self.golden_rows, self.golden_error)
    }

    /// A policy for one flow.
    pub fn policy(&self) -> NetworkPolicy {
        NetworkPolicy::new(self.net.clone(), &self.card.net, Arc::clone(&self.agent))
    }

    /// The policy for the kernel's program, if the network is one of whole numbers.
    pub fn int8(&self) -> Option<&Int8> {
        match &self.net {
            Net::Float(_) => None,
            Net::Int8(policy) => Some(policy.policy()),
        }
    }

    /// A policy for one flow that goes on learning with the card's settings ([`Training::online`]).
    /// Its reward is Owl's [`Utility`] with the weights `delta` and `beta`, and a share `epsilon`
    /// of its actions is random.
    ///
    /// # Errors
    /// [`SpecError`], one line: the network is recurrent, or the action is not one of several
    /// choices.
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

    /// The controller of one flow, as the model is deployed. A network of whole numbers has its own
    /// controller, as in the kernel. An answer takes effect `latency` after its observation. With
    /// limits, a guard watches the flow.
    ///
    /// # Errors
    /// None for a loaded model: its agent was checked.
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

    /// The controller of one flow with `policy`. An answer takes effect `latency` after its
    /// observation.
    ///
    /// # Errors
    /// None for a loaded model: its agent was checked.
    pub fn controller<P: Policy>(
        &self,
        setup: &Setup,
        policy: P,
        latency: Duration,
    ) -> Result<Learned<P>, SpecError> {
        Learned::new(Arc::clone(&self.agent), setup, policy, latency)
    }
}

/// SHA-256 in hex, as cards contain it.
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

/// Reads a file of at most this number of bytes.
fn read(folder: &Path, name: &str, most: u64) -> Result<Vec<u8>, ModelError> {
    let path = folder.join(name);
    let wrong = |what: String| ModelError::new(&path.display().to_string(), what);
    // Opening a pipe would block until its writer opens it.
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
