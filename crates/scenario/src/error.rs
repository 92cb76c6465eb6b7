//! What can be wrong with a scenario, each in one line for the user.

use thiserror::Error;

/// A scenario that cannot be had. Displays as one line that says where, what, and what would be
/// right.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScenarioError {
    /// The text is not TOML.
    #[error("{origin}:{line}: {what}")]
    Syntax {
        /// The file, or the scenario's name.
        origin: String,
        /// Counted from 1.
        line: usize,
        /// What the parser found.
        what: String,
    },
    /// A key or value that the schema does not allow.
    #[error("{origin}:{line}: {key}: {what}")]
    Invalid {
        /// The file, or the scenario's name.
        origin: String,
        /// Counted from 1.
        line: usize,
        /// The key's path; entries of lists are counted from 0.
        key: String,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// No scenario of that name comes with Headway.
    #[error("unknown scenario {name}; {hint}, or give the path of a .toml file")]
    Unknown {
        /// As asked for, in quotes.
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// A family where one scenario is needed.
    #[error("{name} is a family of {number} scenarios; name one of them, such as {example}")]
    Family {
        /// As asked for, in quotes.
        name: String,
        /// Its members.
        number: usize,
        /// The name of one, in quotes.
        example: String,
    },
    /// A value that a family does not have.
    #[error("scenario {name} has no member {value}; {hint}")]
    NoMember {
        /// The family, in quotes.
        name: String,
        /// As asked for, in quotes.
        value: String,
        /// The nearest member, or all of them.
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

/// What the user wrote, in quotes, on one line and not too long.
pub(crate) fn quoted(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    let dots = if short.len() < text.len() { "..." } else { "" };
    format!("'{}{dots}'", short.escape_debug())
}

/// A path, in quotes and whole: its end is what tells one from another.
pub(crate) fn quoted_path(path: &str) -> String {
    format!("'{}'", path.escape_debug())
}
