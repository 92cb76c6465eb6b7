//! Commands on their way to the agent's thread, and its answers.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use nix::sys::eventfd::{EfdFlags, EventFd};
use serde_json::Value;

use super::patient::MOST_CLIENTS;
use crate::agent::{Policies, SavedStates};
use crate::error::{Error, Result};
use crate::network::News;

/// A command for the agent.
#[derive(Clone, Debug)]
pub enum AgentCommand {
    /// Describe the agent without its flows. This takes the same time however many flows there are.
    Counters,
    /// Describe the agent and what the network reports, without the flows.
    Summary,
    /// Describe some of the flows, from this slot on.
    Flows(u16),
    /// Use these policies for new flows, which start from these saved states.
    Take(Option<Policies>, SavedStates),
    /// Give the present policies to some of the flows, from this slot on.
    Renew(u16),
    /// Set parameters of one flow, or of all.
    Set(Option<u32>, String),
    /// Take what the network reports about its paths.
    Hear(News),
}

type Request = (AgentCommand, SyncSender<Value>);

/// The agent's end.
#[derive(Debug)]
pub struct Mailbox {
    requests: Receiver<Request>,
    wakeup: Arc<EventFd>,
}

/// The clients' end.
#[derive(Clone, Debug)]
pub struct Sender {
    requests: SyncSender<Request>,
    wakeup: Arc<EventFd>,
}

impl Mailbox {
    /// Room for the commands of all senders: clients of the socket and of the metrics, the network,
    /// and a reload.
    const ROOM: usize = 2 * MOST_CLIENTS + 2;

    /// Makes an empty mailbox.
    ///
    /// # Errors
    /// One line, if the system has no eventfd left.
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

    /// Answers all commands that have come.
    pub fn answer(&self, mut fulfil: impl FnMut(AgentCommand) -> Value) {
        let _ = self.wakeup.read();
        for (command, to) in self.requests.try_iter() {
            // The sender may have given up.
            let _ = to.try_send(fulfil(command));
        }
    }
}

impl Sender {
    /// The longest time to wait for an answer.
    const PATIENCE: Duration = Duration::from_secs(5);

    /// Sends a command and waits for the answer.
    pub fn ask(&self, command: AgentCommand) -> Value {
        let (to, from) = sync_channel(1);
        let sent = self.requests.try_send((command, to)).is_ok() && self.wakeup.write(1).is_ok();
        match from.recv_timeout(Sender::PATIENCE) {
            Ok(answer) if sent => answer,
            // The agent may carry out the command later.
            _ => {
                serde_json::json!({ "error": "the agent has not answered for 5 s; is it stopped?" })
            }
        }
    }
}
