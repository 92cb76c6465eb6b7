//! The errors of a scenario, each one line for the user.

use thiserror::Error;

/// Why a scenario is not usable. It displays as one line that says where, what, and what would be
/// right.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScenarioError {
    /// The text is not TOML.
    #[error("{origin}:{line}: {what}")]
    Syntax {
        /// The file, or the scenario's name.
        origin: String,
        /// The line, from 1.
        line: usize,
        /// What the parser found.
        what: String,
    },
    /// A key or value that the schema does not allow.
    #[error("{origin}:{line}: {key}: {what}")]
    Invalid {
        /// The file, or the scenario's name.
        origin: String,
        /// The line, from 1.
        line: usize,
        /// The key's path; entries of lists are counted from 0.
        key: String,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// No scenario of that name comes with Headway.
    #[error("unknown scenario {name}; {hint}, or give the path of a .toml file")]
    Unknown {
        /// The name that was asked for, in quotes.
        name: String,
        /// The nearest name, or all names.
        hint: String,
    },
    /// A family where one scenario is needed.
    #[error("{name} is a family of {number} scenarios; name one of them, such as {example}")]
    Family {
        /// The name that was asked for, in quotes.
        name: String,
        /// The number of its members.
        number: usize,
        /// The name of one member, in quotes.
        example: String,
    },
    /// A value that a family does not have.
    #[error("scenario {name} has no member {value}; {hint}")]
    NoMember {
        /// The family, in quotes.
        name: String,
        /// The value that was asked for, in quotes.
        value: String,
        /// The nearest member, or all members.
        hint: String,
    },
    /// A file that cannot be read.
    #[error("cannot read the scenario {path}: {why}")]
    Unreadable {
        /// The file, in quotes.
        path: String,
        /// The system's reason.
        why: String,
    },
}

/// Quotes what the user wrote, on one line and shortened.
pub(crate) fn quoted(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    let dots = if short.len() < text.len() { "..." } else { "" };
    format!("'{}{dots}'", short.escape_debug())
}

/// Quotes a path without shortening it, because its end distinguishes it from others.
pub(crate) fn quoted_path(path: &str) -> String {
    format!("'{}'", path.escape_debug())
}
