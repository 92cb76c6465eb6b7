//! What can be wrong with a model, in one line.

/// A model that cannot be had: which file it is, what is wrong, and what would be right. One line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {what}")]
pub struct ModelError {
    file: String,
    what: String,
}

impl ModelError {
    /// What others wrote into a model stands in one line, and within reason.
    const LONGEST: usize = 400;

    pub(super) fn new(file: &str, what: impl std::fmt::Display) -> ModelError {
        let plain = |text: &str| -> String {
            let words = text.chars().map(|c| if c.is_control() { ' ' } else { c });
            words.take(ModelError::LONGEST).collect()
        };
        ModelError {
            file: plain(file),
            what: plain(&what.to_string()),
        }
    }

    /// The file, or the folder, that is wrong.
    pub fn file(&self) -> &str {
        &self.file
    }
}
