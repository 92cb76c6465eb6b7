//! What goes wrong, in one line.

/// Why the agent cannot do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was asked for is not right. Exit code 2.
    #[error("{0}")]
    Usage(String),
    /// What was asked for cannot be done here. Exit code 1.
    #[error("{0}")]
    Failed(String),
}

impl From<headway_fixed::LimitError> for Error {
    fn from(why: headway_fixed::LimitError) -> Error {
        Error::Failed(why.to_string())
    }
}

impl Error {
    /// `what` failed because of `why`.
    pub fn failed(what: impl std::fmt::Display, why: impl std::fmt::Display) -> Error {
        Error::Failed(format!("{what}: {why}"))
    }

    /// For `process::exit`.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage(_) => 2,
            Error::Failed(_) => 1,
        }
    }
}

/// What came of it, or why it cannot be done.
pub type Result<T> = std::result::Result<T, Error>;
