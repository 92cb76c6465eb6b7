//! The controller that sockets have which choose none.

use std::fs;
use std::path::{Path, PathBuf};

use headway_machine::Machine;

use crate::error::{Error, Result};

const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// A controller as the default; dropped, the one before is it again.
#[derive(Debug)]
pub struct DefaultController {
    before: String,
    ours: String,
    /// A file that says what was before, as long as it is not set back.
    kept: PathBuf,
}

impl DefaultController {
    /// Of the network namespace that the agent is in. An agent that was killed has set nothing
    /// back: then the file `kept` says what was before.
    ///
    /// # Errors
    /// One line, if it may not be set.
    pub fn set(name: &str, kept: &Path) -> Result<DefaultController> {
        let failed = |e| {
            let why = Machine::here().setting(DEFAULT, &e);
            Error::failed(format!("--default: cannot set {DEFAULT}"), why)
        };
        let now = fs::read_to_string(DEFAULT).map_err(failed)?;
        let available = fs::read_to_string(AVAILABLE).map_err(failed)?;
        let earlier = fs::read_to_string(kept);
        let before = before(
            &now,
            earlier.as_deref().unwrap_or_default(),
            &available,
            name,
        );
        if let Err(error) = fs::write(kept, &before) {
            tracing::warn!(file = %kept.display(), %error, "the old default cannot be written down, so a killed agent cannot restore it");
        }
        if let Err(error) = fs::write(DEFAULT, name) {
            // It says nothing that was not so.
            if earlier.is_err() {
                let _ = fs::remove_file(kept);
            }
            return Err(failed(error));
        }
        Ok(DefaultController {
            before,
            ours: name.to_owned(),
            kept: kept.to_owned(),
        })
    }
}

/// Sets back what was the default before, if `ours` is it now: of an agent that was killed.
///
/// # Errors
/// One line, if it may not be set.
pub fn set_back(ours: &str, kept: &Path) -> Result<()> {
    let now = fs::read_to_string(DEFAULT).unwrap_or_default();
    if now.trim() != ours {
        return Ok(());
    }
    let earlier = fs::read_to_string(kept).unwrap_or_default();
    let available = fs::read_to_string(AVAILABLE).unwrap_or_default();
    let before = before(&now, &earlier, &available, ours);
    fs::write(DEFAULT, before).map_err(|e| {
        let why = Machine::here().setting(DEFAULT, &e);
        Error::failed(format!("cannot set {DEFAULT} back"), why)
    })?;
    let _ = fs::remove_file(kept);
    Ok(())
}

/// What is to be set back: what is the default now, unless that is our own or is no more.
fn before(now: &str, kept: &str, available: &str, ours: &str) -> String {
    let is_there = |name: &&str| *name != ours && available.split_whitespace().any(|a| a == *name);
    let found = [now.trim(), kept.trim()].into_iter().find(is_there);
    found.unwrap_or("cubic").to_owned()
}

impl Drop for DefaultController {
    fn drop(&mut self) {
        // Somebody may have set another meanwhile.
        let now = fs::read_to_string(DEFAULT).unwrap_or_default();
        if now.trim() == self.ours
            && let Err(error) = fs::write(DEFAULT, &self.before)
        {
            tracing::error!(%error, before = self.before, "cannot set {DEFAULT} back");
        }
        let _ = fs::remove_file(&self.kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_was_killed_is_never_what_was_before() {
        let available = "reno cubic bbr headway_owl";
        for (now, kept, expected) in [
            ("bbr\n", "", "bbr"),
            // Somebody has set another since.
            ("reno\n", "bbr", "reno"),
            ("headway_owl\n", "bbr\n", "bbr"),
            ("headway_owl\n", "headway_owl", "cubic"),
            ("headway_owl\n", "", "cubic"),
            // Another name's agent was killed.
            ("headway_rate\n", "", "cubic"),
        ] {
            assert_eq!(before(now, kept, available, "headway_owl"), expected);
        }
    }
}
