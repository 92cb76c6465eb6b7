//! The system's default controller, for sockets that do not choose one.

use std::fs;
use std::path::{Path, PathBuf};

use headway_machine::Machine;

use crate::error::{Error, Result};

const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Makes a controller the default. Dropping this restores the previous default.
#[derive(Debug)]
pub struct DefaultController {
    before: String,
    ours: String,
    /// A file with the previous default and the agents' ones since, until it is restored.
    kept: PathBuf,
}

impl DefaultController {
    /// Sets the default of the agent's network namespace. If an earlier agent was killed, it has
    /// not restored the default, and the file `kept` has the previous one.
    ///
    /// # Errors
    /// One line, if the default cannot be set.
    pub fn set(name: &str, kept: &Path) -> Result<DefaultController> {
        let failed = |e| {
            let why = Machine::here().setting(DEFAULT, &e);
            Error::failed(format!("--default: cannot set {DEFAULT}"), why)
        };
        let now = fs::read_to_string(DEFAULT).map_err(failed)?;
        let available = fs::read_to_string(AVAILABLE).map_err(failed)?;
        let earlier = fs::read_to_string(kept);
        let found = earlier.as_deref().unwrap_or_default();
        let before = before(&now, found, &available, name);
        let others = agents_of(found).filter(|agents| *agents != name);
        let words: Vec<&str> = [&*before, name].into_iter().chain(others).collect();
        let words = words.join(" ");
        if let Err(error) = fs::write(kept, words + "\n") {
            tracing::warn!(file = %kept.display(), %error, "the previous default cannot be saved, so it cannot be restored if this agent is killed");
        }
        if let Err(error) = fs::write(DEFAULT, name) {
            // A file of an earlier agent is still right.
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

/// Restores the previous default if `ours` is the default now, because its agent was killed.
///
/// # Errors
/// One line, if the default cannot be set.
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
        Error::failed(format!("cannot restore {DEFAULT}"), why)
    })?;
    let _ = fs::remove_file(kept);
    Ok(())
}

/// The controllers in a file that agents have made the default.
fn agents_of(kept: &str) -> impl Iterator<Item = &str> {
    kept.split_whitespace().skip(1)
}

/// The default to restore: the present one (`now`), or the first one of the file (`kept`), which
/// earlier agents found. The file's other ones are those that agents have made the default. A
/// default that is an agent's, or not available, is left out. Without another it is Cubic.
fn before(now: &str, kept: &str, available: &str, ours: &str) -> String {
    let found = kept.split_whitespace().next().unwrap_or_default();
    let is_there = |name: &&str| {
        let is_agents = *name == ours || agents_of(kept).any(|agents| agents == *name);
        !is_agents && available.split_whitespace().any(|a| a == *name)
    };
    let first = [now.trim(), found].into_iter().find(is_there);
    first.unwrap_or("cubic").to_owned()
}

impl Drop for DefaultController {
    fn drop(&mut self) {
        // An administrator may have set another default meanwhile.
        let now = fs::read_to_string(DEFAULT).unwrap_or_default();
        if now.trim() == self.ours
            && let Err(error) = fs::write(DEFAULT, &self.before)
        {
            // The next agent, or `headwayd unload`, restores it from the file.
            tracing::error!(%error, before = self.before, "cannot restore {DEFAULT}");
            return;
        }
        let _ = fs::remove_file(&self.kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_agents_controller_is_never_restored() {
        let available = "reno cubic bbr headway_owl headway_bbr";
        for (now, kept, expected) in [
            ("bbr\n", "", "bbr"),
            // An administrator has set another default since.
            ("reno\n", "bbr", "reno"),
            ("headway_owl\n", "bbr\n", "bbr"),
            ("headway_owl\n", "headway_owl", "cubic"),
            ("headway_owl\n", "", "cubic"),
            // An agent of another name was killed. Its controller may still be there.
            ("headway_rate\n", "bbr headway_rate\n", "bbr"),
            ("headway_bbr\n", "bbr headway_bbr\n", "bbr"),
            ("headway_bbr\n", "bbr headway_rate headway_bbr\n", "bbr"),
            ("reno\n", "bbr headway_bbr\n", "reno"),
            ("headway_owl\n", "bbr headway_owl\n", "bbr"),
            ("headway_bbr\n", "gone headway_bbr\n", "cubic"),
        ] {
            assert_eq!(before(now, kept, available, "headway_owl"), expected);
        }
    }
}
