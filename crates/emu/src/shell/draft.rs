//! A scenario made of the words of the command line.

use headway_scenario::{Scenario, ScenarioError};

use super::ShellError;

/// The scenario as it is being written, and the option from which each line comes.
#[derive(Debug, Default)]
pub struct Draft {
    text: String,
    lines: Vec<(usize, &'static str, String)>,
}

impl Draft {
    /// Adds lines that come from no option.
    pub fn line(&mut self, text: &str) {
        self.text += text;
        self.text.push('\n');
    }

    /// Adds a line that comes from what was `given` with an option.
    ///
    /// # Errors
    /// If `given` is not one line of text.
    pub fn option(
        &mut self,
        option: &'static str,
        given: &str,
        key: &str,
        value: &str,
    ) -> Result<(), ShellError> {
        if given.trim().is_empty() || given.contains(['\n', '\r']) {
            return Err(wrong(option, &quoted(given), "write one line of text"));
        }
        let key =
            match key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !key.is_empty() {
                true => key.to_owned(),
                false => quoted(key),
            };
        let line = 1 + self.text.lines().count();
        self.lines.push((line, option, given.to_owned()));
        self.line(&format!("{key} = {value}"));
        Ok(())
    }

    /// Reads the scenario.
    ///
    /// # Errors
    /// In the words of the command line, with the name of the option.
    pub fn read(&self) -> Result<Scenario, ShellError> {
        Scenario::parse(&self.text, "shell").map_err(|error| {
            let (at, key, what) = match &error {
                ScenarioError::Syntax { line, what, .. } => (*line, "", what.clone()),
                ScenarioError::Invalid {
                    line, key, what, ..
                } => (*line, key.as_str(), what.clone()),
                _ => (0, "", error.to_string()),
            };
            // The words that a scenario asks for are TOML.
            let what = what.replace(" = ", "=").replace('"', "");
            match self.lines.iter().find(|(line, ..)| *line == at) {
                Some((_, option, given)) => wrong(option, given, &within(key, &what)),
                None => ShellError::Failed(what),
            }
        })
    }
}

/// `what`, preceded by the part of the option that it is about: the part after `link[0].queue`.
fn within(key: &str, what: &str) -> String {
    match key.splitn(3, '.').nth(2) {
        Some(part) => format!("{part}: {what}"),
        None => what.to_owned(),
    }
}

/// The error that an option's value is wrong.
pub fn wrong(option: &'static str, given: &str, what: &str) -> ShellError {
    ShellError::Option {
        option,
        given: given.to_owned(),
        what: what.to_owned(),
    }
}

/// Turns `100pkt`, `codel:target=5ms:ecn=true` or `mean=2ms` into TOML; `kind` is the key of the
/// first word. TOML stays as it is.
pub fn value(given: &str, kind: Option<&str>) -> String {
    if given.starts_with('{') {
        return given.to_owned();
    }
    let named = kind.filter(|_| given.starts_with(|c: char| c.is_ascii_alphabetic()));
    if named.is_none() && !given.contains('=') {
        return quoted(given);
    }
    let words = given
        .split(':')
        .enumerate()
        .map(|(i, word)| match word.split_once('=') {
            Some((key, value)) => format!("{} = {}", quoted(key), value_of(value)),
            None if i == 0 => format!("{} = {}", named.unwrap_or("kind"), quoted(word)),
            None => format!("{} = true", quoted(word)),
        });
    format!("{{ {} }}", words.collect::<Vec<_>>().join(", "))
}

/// Turns a word into a boolean, or else into text, which the schema takes for every number.
pub fn value_of(text: &str) -> String {
    match text {
        "true" | "false" => text.to_owned(),
        _ => quoted(text),
    }
}

/// A JSON string is a TOML string, too.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
