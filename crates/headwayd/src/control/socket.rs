//! The control socket: a client sends a command and gets a line of JSON. Only the owner of the
//! socket's file can connect.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use headway_machine::connect_within;
use nix::sys::stat::{Mode, umask};

use super::mailbox::Sender;
use super::patient::{Patient, accepted, answered_apart};
use super::whole::Reloads;
use super::{AgentCommand, whole};
use crate::error::{Error, Result};
use crate::programs::Listeners;

/// The time for a whole command, and then for a client to read the answer.
const PATIENCE: Duration = Duration::from_secs(2);
const LONGEST_WORD: u64 = 256;
/// The time in which an agent that works accepts a client.
const CONNECTS_WITHIN: Duration = Duration::from_secs(2);

/// A socket of the file system. Dropping it removes its file.
#[derive(Debug)]
pub struct Socket {
    path: PathBuf,
    listener: UnixListener,
}

impl Socket {
    /// Listens at `path`, for its owner alone. The file that an ended agent has left there is
    /// removed.
    ///
    /// # Errors
    /// One line: another agent listens there, or this process may not write the folder.
    pub fn bind(path: &Path) -> Result<Socket> {
        let wrong = |why: &dyn std::fmt::Display| {
            Error::Usage(format!("--socket {}: {why}", path.display()))
        };
        match connect_within(path, CONNECTS_WITHIN) {
            Ok(_) => return Err(wrong(&"another headwayd listens there")),
            // Its clients wait for it.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(wrong(
                    &"another headwayd listens there, and does not answer",
                ));
            }
            Err(_) => {}
        }
        let refused = |e: io::Error| {
            wrong(&format_args!(
                "{e}; run it as root (sudo), or give a --socket where you may make one"
            ))
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(refused)?;
        }
        let is_left = fs::symlink_metadata(path).is_ok_and(|m| {
            use std::os::unix::fs::FileTypeExt;
            m.file_type().is_socket()
        });
        if is_left {
            fs::remove_file(path).map_err(refused)?;
        }
        // The mask belongs to the process, which has no second thread yet. With it no other user
        // can connect, not even at first.
        let before = umask(Mode::from_bits_truncate(0o177));
        let listener = UnixListener::bind(path);
        umask(before);
        let listener = listener.map_err(refused)?;
        Ok(Socket {
            path: path.to_owned(),
            listener,
        })
    }

    /// The listening end, for a thread.
    ///
    /// # Errors
    /// One line, if there are no descriptors left.
    pub fn listener(&self) -> Result<UnixListener> {
        let listener = self.listener.try_clone();
        listener.map_err(|e| Error::failed("cannot listen on the control socket", e))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Answers clients, each in a thread of its own.
pub fn serve(
    listener: &UnixListener,
    agent: &Sender,
    reloads: &Reloads,
    listeners: Option<&Listeners>,
) {
    answered_apart(accepted(listener.incoming()), |client| {
        if let Err(error) = answer(&client, agent, reloads, listeners) {
            tracing::debug!(%error, "a client of the control socket left");
        }
    });
}

fn answer(
    client: &UnixStream,
    agent: &Sender,
    reloads: &Reloads,
    listeners: Option<&Listeners>,
) -> std::io::Result<()> {
    let mut word = String::new();
    let asks = Patient::new(client, PATIENCE);
    asks.take(LONGEST_WORD).read_to_string(&mut word)?;
    let said = match understood(word.trim()) {
        Some(Word::Status) => {
            let mut status = whole::status(agent);
            status["listeners_of_ended_agents"] = listeners.map(Listeners::describe).into();
            status
        }
        Some(Word::Reload) => match reloads.now() {
            Ok(()) => serde_json::json!({}),
            Err(error) => serde_json::json!({ "error": error.to_string() }),
        },
        Some(Word::Set(number, settings)) => agent.ask(AgentCommand::Set(number, settings)),
        None => {
            serde_json::json!({ "error": "unknown word; the words are status, reload and set" })
        }
    };
    Patient::new(client, PATIENCE).write_all(format!("{said}\n").as_bytes())
}

/// A client's command.
enum Word {
    Status,
    Reload,
    Set(Option<u32>, String),
}

/// `status`, `reload`, `set all NAME=VALUE ...`, `set 3 NAME=VALUE ...`.
fn understood(words: &str) -> Option<Word> {
    let (word, rest) = words.split_once(' ').unwrap_or((words, ""));
    match word {
        "status" => Some(Word::Status),
        "reload" => Some(Word::Reload),
        "set" => {
            let (flow, settings) = rest.split_once(' ')?;
            let number = match flow {
                "all" => None,
                _ => Some(flow.parse().ok()?),
            };
            Some(Word::Set(number, settings.to_owned()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use serde_json::{Value, json};

    use super::*;
    use crate::control::{Mailbox, ask};

    /// The reload goes on until this is set.
    static ENDS: AtomicBool = AtomicBool::new(false);
    static RENEWS: AtomicBool = AtomicBool::new(false);

    fn fulfil(command: AgentCommand) -> Value {
        if !matches!(command, AgentCommand::Renew(_)) {
            return json!({});
        }
        RENEWS.store(true, Ordering::SeqCst);
        match ENDS.load(Ordering::SeqCst) {
            true => json!({ "next": null }),
            false => json!({ "next": 1 }),
        }
    }

    #[test]
    fn a_reload_does_not_hold_up_other_clients() {
        let path = std::env::temp_dir().join(format!("headwayd-socket-{}", std::process::id()));
        let socket = Socket::bind(&path).expect("a socket");
        let listener = socket.listener().expect("a descriptor");
        let (mailbox, sender) = Mailbox::new().expect("an eventfd");
        let reloads = Reloads::new(None, None, sender.clone());
        // Both serve until the process ends.
        thread::spawn(move || serve(&listener, &sender, &reloads, None));
        thread::spawn(move || {
            loop {
                mailbox.answer(fulfil);
                thread::sleep(Duration::from_millis(1));
            }
        });
        let asks = path.clone();
        let first = thread::spawn(move || ask(&asks, "reload"));
        for _ in 0..60_000 {
            if RENEWS.load(Ordering::SeqCst) {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        let status = ask(&path, "status").expect("an answer");
        assert!(status["error"].is_null(), "{status}");
        let second = ask(&path, "reload").expect_err("one is under way");
        let says = "another reload is under way";
        assert!(second.to_string().contains(says), "{second}");
        assert!(!first.is_finished());
        ENDS.store(true, Ordering::SeqCst);
        first.join().expect("no panic").expect("it is done");
        ask(&path, "reload").expect("none is under way");
    }
}
