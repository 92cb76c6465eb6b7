//! The client of the control socket, for `headwayd status`, `set` and `reload`.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::path::Path;
use std::time::Duration;

use headway_machine::connect_within;
use serde_json::Value;

use crate::error::{Error, Result};

const PATIENCE: Duration = Duration::from_secs(10);

/// Sends a command to the agent that listens at `path`, and returns its answer.
///
/// # Errors
/// One line: no agent listens there, or it refuses the command.
pub fn ask(path: &Path, word: &str) -> Result<Value> {
    let wrong = |why: &dyn std::fmt::Display| {
        Error::Failed(format!("no agent answers at {}: {why}", path.display()))
    };
    let late = || {
        Error::Failed(format!(
            "the agent at {} has not answered for {} s; is it stopped?",
            path.display(),
            PATIENCE.as_secs()
        ))
    };
    let mut agent = connect_within(path, PATIENCE).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => late(),
        _ => nobody(path, &error),
    })?;
    let asked = agent
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| writeln!(agent, "{word}"))
        .and_then(|()| agent.shutdown(Shutdown::Write));
    asked.map_err(|e| wrong(&e))?;
    let mut answer = String::new();
    let read = agent.read_to_string(&mut answer);
    read.map_err(|error| match (word, error.kind()) {
        ("reload", ErrorKind::WouldBlock) => Error::Failed(format!(
            "the reload is under way, and takes longer than {} s: the log of the agent says how it ends",
            PATIENCE.as_secs()
        )),
        (_, ErrorKind::WouldBlock) => late(),
        _ => wrong(&error),
    })?;
    let answer: Value = serde_json::from_str(&answer).map_err(|e| wrong(&e))?;
    match answer["error"].as_str() {
        Some(error) => Err(Error::Failed(error.to_owned())),
        None => Ok(answer),
    }
}

/// The error that no agent answers, with its remedy.
fn nobody(path: &Path, why: &io::Error) -> Error {
    let remedy = match why.kind() {
        ErrorKind::PermissionDenied => "only its owner may use the socket; run this as root (sudo)",
        _ => {
            "start one: headwayd run --policy owl; or give the socket of one that runs: --socket PATH"
        }
    };
    Error::Failed(format!(
        "no agent answers at {}: {why}; {remedy}",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_error_explains_how_to_start_agent() {
        let error =
            ask(Path::new("/nowhere/headwayd.sock"), "status").expect_err("no agent is there");
        let error = error.to_string();
        for hint in [
            "/nowhere/headwayd.sock",
            "headwayd run --policy",
            "--socket PATH",
        ] {
            assert!(error.contains(hint) && !error.contains('\n'), "{error}");
        }
    }
}
