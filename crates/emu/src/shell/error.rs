//! The errors of a shell, each one line for the user.

use std::io;
use std::path::{Path, PathBuf};

use headway_scenario::StoreError;

use crate::sys::SetupError;

/// Why a shell cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// The value of an option is wrong.
    #[error("{option} {given}: {what}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// The value that was given.
        given: String,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// A trace is not available.
    #[error("{option}: {error}")]
    Trace {
        /// The option that names it.
        option: &'static str,
        /// Why.
        error: StoreError,
    },
    /// The program cannot be started.
    #[error("cannot run '{program}': {source}")]
    Program {
        /// The program's name.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// The kernel refuses something.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The folder of the shells' entries cannot be used.
    #[error("{}: {source}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

impl ShellError {
    pub(super) fn state(path: &Path, source: io::Error) -> ShellError {
        let path = path.to_owned();
        ShellError::State { path, source }
    }

    /// Is the input wrong, rather than the machine?
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            ShellError::Option { .. } | ShellError::Trace { .. } | ShellError::Program { .. }
        )
    }
}
