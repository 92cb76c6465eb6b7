//! The models that come with Headway, from `models/`, compiled in.

use super::{Files, Model, ModelError};

/// A model that comes with Headway.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// Its folder in `models/`: `aurora-v1`.
    pub title: &'static str,
    /// Its files.
    pub files: Files<'static>,
}

impl Shipped {
    /// Reads and checks it.
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

/// All of them, the newest version of a name first.
pub fn shipped() -> &'static [Shipped] {
    models!(
        "aurora-v2",
        "aurora-v1",
        "owl-v1",
        "owl-loss-v1",
        "aurora-int8-v1"
    )
}
