//! Errors, each of which is one line.

/// Why the agent cannot do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line is wrong. Exit code 2.
    #[error("{0}")]
    Usage(String),
    /// The command cannot be carried out here. Exit code 1.
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

    /// The exit code of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage(_) => 2,
            Error::Failed(_) => 1,
        }
    }
}

/// A result, or one line that says why there is none.
pub type Result<T> = std::result::Result<T, Error>;
