//! Wishes on their way to the agent's thread, and its answers.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use nix::sys::eventfd::{EfdFlags, EventFd};
use serde_json::Value;

use super::patient::MOST_CLIENTS;
use crate::agent::{Place, Policies};
use crate::error::{Error, Result};
use crate::network::News;

/// What somebody wants of the agent.
#[derive(Clone, Debug)]
pub enum Wish {
    /// To know what happens, but for the flows: of no more work however many they are.
    Counters,
    /// The same, and what the network told.
    Summary,
    /// To know some of the flows, from a place on.
    Flows(Place),
    /// That it takes these policies, for flows that begin.
    Take(Vec<Option<Policies>>),
    /// That it gives them to some of the flows that there are, from a place on.
    Renew(Place),
    /// That it sets parameters of a flow, or of all.
    Set(Option<u32>, String),
    /// That it hears what the network tells of its paths.
    Hear(News),
}

type Letter = (Wish, SyncSender<Value>);

/// The agent's end.
#[derive(Debug)]
pub struct Mailbox {
    letters: Receiver<Letter>,
    bell: Arc<EventFd>,
}

/// The end of those who ask.
#[derive(Clone, Debug)]
pub struct Sender {
    letters: SyncSender<Letter>,
    bell: Arc<EventFd>,
}

impl Mailbox {
    /// Room for the letters of all who ask: clients of the socket, of the metrics, the network, and
    /// who reloads.
    const ROOM: usize = 2 * MOST_CLIENTS + 2;

    /// Empty.
    ///
    /// # Errors
    /// If the system has no eventfd left.
    pub fn new() -> Result<(Mailbox, Sender)> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let bell =
            EventFd::from_flags(flags).map_err(|e| Error::failed("cannot make an eventfd", e))?;
        let bell = Arc::new(bell);
        let (to, letters) = sync_channel(Mailbox::ROOM);
        let sender = Sender {
            letters: to,
            bell: Arc::clone(&bell),
        };
        Ok((Mailbox { letters, bell }, sender))
    }

    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Answers all that is there.
    pub fn answer(&self, mut fulfil: impl FnMut(Wish) -> Value) {
        let _ = self.bell.read();
        for (wish, to) in self.letters.try_iter() {
            // Who asked may have gone.
            let _ = to.try_send(fulfil(wish));
        }
    }
}

impl Sender {
    /// How long an answer may take.
    const PATIENCE: Duration = Duration::from_secs(5);

    /// Asks, and waits for the answer.
    pub fn ask(&self, wish: Wish) -> Value {
        let (to, from) = sync_channel(1);
        let sent = self.letters.try_send((wish, to)).is_ok() && self.bell.write(1).is_ok();
        match from.recv_timeout(Sender::PATIENCE) {
            Ok(answer) if sent => answer,
            // It may do it later.
            _ => {
                serde_json::json!({ "error": "the agent has not answered for 5 s; is it stopped?" })
            }
        }
    }
}
