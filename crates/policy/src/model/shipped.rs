//! The models in `models/`, which are compiled in.

use super::{Files, Learner, LearnerFiles, Model, ModelError};

/// A shipped model.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// Its folder in `models/`: `aurora-v1`.
    pub title: &'static str,
    /// The contents of its files.
    pub files: Files<'static>,
}

impl Shipped {
    /// Reads and checks the model.
    ///
    /// # Errors
    /// [`ModelError`], which a test rules out.
    pub fn model(&self) -> Result<Model, ModelError> {
        Model::read(&format!("models/{}", self.title), self.files)
    }
}

macro_rules! models {
    ($($title:literal),* $(,)?) => {
        &[$(Shipped {
            title: $title,
            files: Files {
                card: include_bytes!(concat!("../../../../models/", $title, "/card.toml")),
                weights: include_bytes!(concat!("../../../../models/", $title, "/weights.safetensors")),
                golden: include_bytes!(concat!("../../../../models/", $title, "/golden.npz")),
            },
        }),*]
    };
}

/// All shipped models. Of each name the newest version comes first.
pub fn shipped() -> &'static [Shipped] {
    models!(
        "aurora-v2",
        "aurora-v1",
        "aurora-cellular-v1",
        "owl-v1",
        "owl-loss-v1",
        "aurora-int8-v1",
        "interval-learned-v1",
        "interval-v1",
        "bbr-tuner-ppo-v1",
        "bbr-tuner-dqn-v1",
        "bbr-tuner-a2c-v1",
    )
}

/// A shipped learner.
#[derive(Clone, Copy, Debug)]
pub struct ShippedLearner {
    /// Its folder in `models/`: `rax-v3`.
    pub title: &'static str,
    /// The contents of its files.
    pub files: LearnerFiles<'static>,
}

impl ShippedLearner {
    /// Reads and checks the learner.
    ///
    /// # Errors
    /// [`ModelError`], which a test rules out.
    pub fn learner(&self) -> Result<Learner, ModelError> {
        Learner::read(&format!("models/{}", self.title), self.files)
    }
}

/// All shipped learners. Of each name the newest version comes first.
pub fn shipped_learners() -> &'static [ShippedLearner] {
    &[ShippedLearner {
        title: "rax-v3",
        files: LearnerFiles {
            card: include_bytes!("../../../../models/rax-v3/card.toml"),
            learner: include_bytes!("../../../../models/rax-v3/learner.txt"),
        },
    }]
}
