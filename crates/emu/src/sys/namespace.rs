//! Network namespaces that have no name and vanish with their last user.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use headway_machine::Machine;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::stat::fstat;

/// A network namespace. It exists as long as this value, a process in it, or the owner of a device
/// in it.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

/// Why a namespace, or something in it, is not available.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The program `ip` failed.
    #[error("ip: {0}")]
    Ip(String),
}

impl SetupError {
    pub(crate) fn system(what: impl Into<String>, source: impl Into<io::Error>) -> SetupError {
        SetupError::System {
            what: what.into(),
            source: source.into(),
        }
    }

    /// A refusal, with the cause and the cure that [`Machine`] has found.
    pub(crate) fn refused(what: impl Into<String>, why: String) -> SetupError {
        SetupError::system(what, io::Error::other(why))
    }
}

const OF_THREAD: &str = "/proc/thread-self/ns/net";

impl Namespace {
    /// The namespace of the calling thread.
    ///
    /// # Errors
    /// If /proc is not mounted.
    pub fn current() -> Result<Namespace, SetupError> {
        match File::open(OF_THREAD) {
            Ok(file) => Ok(Namespace { file }),
            Err(e) => Err(SetupError::system(format!("open {OF_THREAD}"), e)),
        }
    }

    /// Makes a namespace, empty but for a loopback device that is down.
    ///
    /// # Errors
    /// Without the privilege: see [`become_able`](super::become_able).
    pub fn create() -> Result<Namespace, SetupError> {
        // It is made on another thread, so the caller stays where it is.
        on_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|e| {
                let why = Machine::here().network_namespace(&e.into());
                SetupError::refused("make a network namespace", why)
            })?;
            Namespace::current()
        })?
    }

    /// Puts the calling thread into the namespace for good, with everything that it starts.
    ///
    /// # Errors
    /// Without the privilege.
    pub fn enter(&self) -> Result<(), SetupError> {
        self.join().map_err(|e| {
            let why = Machine::here().entry(&e.into());
            SetupError::refused("enter a network namespace", why)
        })
    }

    /// Same as [`enter`](Self::enter), for a process that may not allocate.
    pub(super) fn join(&self) -> nix::Result<()> {
        setns(self.file.as_fd(), CloneFlags::CLONE_NEWNET)
    }

    /// Runs `work` in the namespace, on a thread of its own. Sockets, devices and processes that it
    /// makes belong to the namespace.
    ///
    /// # Errors
    /// Without the privilege.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, SetupError> {
        on_thread(|| self.enter().map(|()| work()))?
    }

    /// Runs the lines of `batch` in the namespace, as `ip -batch` does.
    ///
    /// # Errors
    /// [`SetupError::Ip`] with the message of `ip`.
    pub fn ip(&self, batch: &str) -> Result<(), SetupError> {
        self.within(|| ip(batch))?
    }

    /// The namespace's inode: a number that no other namespace has while this one exists.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn inode(&self) -> Result<u64, SetupError> {
        let found = fstat(self.file.as_fd());
        found
            .map(|stat| stat.st_ino)
            .map_err(|e| SetupError::system("read a namespace's inode", e))
    }
}

impl Clone for Namespace {
    /// # Panics
    /// If no file descriptor is left.
    fn clone(&self) -> Namespace {
        Namespace {
            file: self.file.try_clone().expect("a file descriptor is left"),
        }
    }
}

/// Writes a setting of the kernel, a file below /proc/sys, in the calling thread's namespace.
///
/// # Errors
/// If the kernel does not permit it.
pub fn set(file: &str, text: &str) -> Result<(), SetupError> {
    fs::write(file, text).map_err(|e| {
        let why = Machine::here().setting(file, &e);
        SetupError::refused(format!("set {file}"), why)
    })
}

fn on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, SetupError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, work);
        let thread = thread.map_err(|e| SetupError::system("start a thread", e))?;
        thread
            .join()
            .map_err(|_| SetupError::system("run a thread", io::Error::other("it panicked")))
    })
}

fn ip(batch: &str) -> Result<(), SetupError> {
    let missing = |e: io::Error| SetupError::refused("run 'ip'", Machine::here().ip(&e));
    let mut child = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(missing)?;
    if let Some(mut stdin) = child.stdin.take() {
        // `ip` ends at its first error and reports it; the unread rest is not another error.
        let _ = stdin.write_all(batch.as_bytes());
    }
    let output = child.wait_with_output().map_err(missing)?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(SetupError::Ip(
                Machine::here().said_by_ip(&said, output.status),
            ))
        }
    }
}
