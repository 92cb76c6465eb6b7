//! Work that takes long with many flows or large models. The thread of the client does it. It asks
//! the agent for a small part at a time, so that the agent answers flows between two parts.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use serde_json::Value;

use super::AgentCommand;
use super::mailbox::Sender;
use crate::agent::{Policies, SavedStates};
use crate::error::{Error, Result};
use crate::system::capabilities;

/// The whole status: the summary, and each flow in the order of their numbers.
pub fn status(agent: &Sender) -> Value {
    let mut status = agent.ask(AgentCommand::Summary);
    let mut flows = Vec::new();
    let told = each_part(agent, AgentCommand::Flows, |part| {
        if let Value::Array(some) = part["flows"].take() {
            flows.extend(some);
        }
    });
    if let Err(error) = told {
        return serde_json::json!({ "error": error.to_string() });
    }
    flows.sort_by_key(|flow| flow["flow"].as_u64());
    // An error has no list of flows.
    if status.get("error").is_none() {
        status["flows"] = flows.into();
    }
    status
}

/// Reads the policies' files again, and gives the policies to all flows.
#[derive(Debug)]
pub struct Reloads {
    policies: Option<Policies>,
    /// The folder of saved states.
    folder: Option<PathBuf>,
    agent: Sender,
    under_way: Mutex<()>,
}

impl Reloads {
    /// Reloads of these policies, for this agent, which saves what it learns in this folder.
    pub fn new(policies: Option<Policies>, folder: Option<PathBuf>, agent: Sender) -> Reloads {
        Reloads {
            policies,
            folder,
            agent,
            under_way: Mutex::new(()),
        }
    }

    /// Reloads, after the reload that is under way. If one of the policies cannot be read or used,
    /// nothing changes.
    ///
    /// # Errors
    /// One line, if one cannot be read or used.
    pub fn next(&self) -> Result<()> {
        let one = self.under_way.lock();
        self.reload(&one.unwrap_or_else(PoisonError::into_inner))
    }

    /// Reloads, unless another reload is under way.
    ///
    /// # Errors
    /// One line, if another is under way, or a policy cannot be read or used.
    pub fn now(&self) -> Result<()> {
        match self.under_way.try_lock() {
            Ok(one) => self.reload(&one),
            Err(TryLockError::Poisoned(one)) => self.reload(&one.into_inner()),
            Err(TryLockError::WouldBlock) => Err(Error::Failed(
                "another reload is under way; the log of the agent says how it ends, and then you can ask for the next"
                    .to_owned(),
            )),
        }
    }

    fn reload(&self, _one: &MutexGuard<'_, ()>) -> Result<()> {
        let policies = self.policies.as_ref().map(Policies::read_again).transpose();
        let policies = policies.map_err(capabilities::explain)?;
        let saved = match (&self.folder, &policies) {
            (Some(folder), Some(policies)) => SavedStates::read(folder, policies),
            _ => SavedStates::default(),
        };
        refused(&self.agent.ask(AgentCommand::Take(policies, saved)))?;
        each_part(&self.agent, AgentCommand::Renew, |_| ())?;
        tracing::info!("the policies were read again");
        Ok(())
    }
}

fn each_part(
    agent: &Sender,
    command: impl Fn(u16) -> AgentCommand,
    mut take: impl FnMut(&mut Value),
) -> Result<()> {
    let mut next = Some(0);
    while let Some(from) = next {
        let mut part = agent.ask(command(from));
        refused(&part)?;
        next = serde_json::from_value(part["next"].take()).unwrap_or_default();
        take(&mut part);
    }
    Ok(())
}

fn refused(answer: &Value) -> Result<()> {
    match answer["error"].as_str() {
        Some(error) => Err(Error::Failed(error.to_owned())),
        None => Ok(()),
    }
}
