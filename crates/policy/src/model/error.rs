//! Errors of model folders, in one line.

/// A model that cannot be loaded. The line says which file is wrong, what is wrong, and what would
/// be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {what}")]
pub struct ModelError {
    file: String,
    what: String,
}

impl ModelError {
    /// The most characters of the file's name, and of the text, since a model can contain any text.
    const MAX_CHARS: usize = 400;

    pub(super) fn new(file: &str, what: impl std::fmt::Display) -> ModelError {
        let plain = |text: &str| -> String {
            let words = text.chars().map(|c| if c.is_control() { ' ' } else { c });
            words.take(ModelError::MAX_CHARS).collect()
        };
        ModelError {
            file: plain(file),
            what: plain(&what.to_string()),
        }
    }

    /// The wrong file or folder.
    pub fn file(&self) -> &str {
        &self.file
    }
}
