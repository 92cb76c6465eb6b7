//! Wishes on their way to the agent's thread, and its answers.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use nix::sys::eventfd::{EfdFlags, EventFd};
use serde_json::Value;

use super::patient::MOST_CLIENTS;
use crate::agent::Policies;
use crate::error::{Error, Result};
use crate::network::News;

/// What somebody wants of the agent.
#[derive(Clone, Debug)]
pub enum AgentCommand {
    /// To know what happens, but for the flows: of no more work however many they are.
    Counters,
    /// The same, and what the network told.
    Summary,
    /// To know some of the flows, from a slot on.
    Flows(u16),
    /// That it takes these policies, for flows that begin.
    Take(Option<Policies>),
    /// That it gives them to some of the flows that there are, from a slot on.
    Renew(u16),
    /// That it sets parameters of a flow, or of all.
    Set(Option<u32>, String),
    /// That it hears what the network tells of its paths.
    Hear(News),
}

type Request = (AgentCommand, SyncSender<Value>);

/// The agent's end.
#[derive(Debug)]
pub struct Mailbox {
    requests: Receiver<Request>,
    wakeup: Arc<EventFd>,
}

/// The end of those who ask.
#[derive(Clone, Debug)]
pub struct Sender {
    requests: SyncSender<Request>,
    wakeup: Arc<EventFd>,
}

impl Mailbox {
    /// Room for the requests of all who ask: clients of the socket, of the metrics, the network,
    /// and who reloads.
    const ROOM: usize = 2 * MOST_CLIENTS + 2;

    /// Empty.
    ///
    /// # Errors
    /// If the system has no eventfd left.
    pub fn new() -> Result<(Mailbox, Sender)> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let wakeup =
            EventFd::from_flags(flags).map_err(|e| Error::failed("cannot make an eventfd", e))?;
        let wakeup = Arc::new(wakeup);
        let (to, requests) = sync_channel(Mailbox::ROOM);
        let sender = Sender {
            requests: to,
            wakeup: Arc::clone(&wakeup),
        };
        Ok((Mailbox { requests, wakeup }, sender))
    }

    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }

    /// Answers all that is there.
    pub fn answer(&self, mut fulfil: impl FnMut(AgentCommand) -> Value) {
        let _ = self.wakeup.read();
        for (command, to) in self.requests.try_iter() {
            // Who asked may have gone.
            let _ = to.try_send(fulfil(command));
        }
    }
}

impl Sender {
    /// How long an answer may take.
    const PATIENCE: Duration = Duration::from_secs(5);

    /// Asks, and waits for the answer.
    pub fn ask(&self, command: AgentCommand) -> Value {
        let (to, from) = sync_channel(1);
        let sent = self.requests.try_send((command, to)).is_ok() && self.wakeup.write(1).is_ok();
        match from.recv_timeout(Sender::PATIENCE) {
            Ok(answer) if sent => answer,
            // It may do it later.
            _ => {
                serde_json::json!({ "error": "the agent has not answered for 5 s; is it stopped?" })
            }
        }
    }
}
