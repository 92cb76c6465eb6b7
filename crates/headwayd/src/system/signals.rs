//! Signals, read from a file descriptor.

use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::error::{Error, Result};

/// SIGTERM and SIGINT end the agent, SIGHUP makes it read its policies again.
pub struct Signals(SignalFd);

impl Signals {
    /// Call this before a second thread starts: threads inherit which signals are blocked.
    ///
    /// # Errors
    /// One line, if the signals cannot be blocked or read.
    pub fn new() -> Result<Signals> {
        let mut set = SigSet::empty();
        for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
            set.add(signal);
        }
        let failed = |e| Error::failed("cannot receive signals", e);
        set.thread_block().map_err(failed)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Signals(SignalFd::with_flags(&set, flags).map_err(failed)?))
    }

    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Waits for a signal that ends the agent, or until `until` closes.
    ///
    /// # Errors
    /// One line, if the system cannot wait.
    pub fn wait(&self, until: Option<BorrowedFd<'_>>) -> Result<()> {
        loop {
            let mut waits = vec![PollFd::new(self.as_fd(), PollFlags::POLLIN)];
            waits.extend(until.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
            match poll(&mut waits, PollTimeout::NONE) {
                Err(Errno::EINTR) => continue,
                Err(e) => return Err(Error::failed("cannot wait for signals", e)),
                Ok(_) => {}
            }
            let has_closed = waits.get(1).is_some_and(|wait| wait.any().unwrap_or(true));
            if has_closed || self.read(|| ()) {
                return Ok(());
            }
        }
    }

    /// Reads the signals that have come, and calls `reload` for each SIGHUP. Returns whether the
    /// agent is to end.
    pub fn read(&self, reload: impl Fn()) -> bool {
        while let Ok(Some(signal)) = self.0.read_signal() {
            if signal.ssi_signo != Signal::SIGHUP as u32 {
                return true;
            }
            reload();
        }
        false
    }
}
