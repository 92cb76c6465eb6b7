//! The controller that sockets have which choose none.

use std::fs;

use crate::error::{Error, Result};

const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// A controller as the default; dropped, the one before is it again.
#[derive(Debug)]
pub struct DefaultController {
    before: String,
    ours: String,
}

impl DefaultController {
    /// Of the network namespace that the agent is in.
    ///
    /// # Errors
    /// One line, if it may not be set.
    pub fn set(name: &str) -> Result<DefaultController> {
        let failed = |e| Error::failed(format!("--default: cannot set {DEFAULT}"), e);
        let before = fs::read_to_string(DEFAULT)
            .map_err(failed)?
            .trim()
            .to_owned();
        fs::write(DEFAULT, name).map_err(failed)?;
        Ok(DefaultController {
            before,
            ours: name.to_owned(),
        })
    }
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
    }
}
