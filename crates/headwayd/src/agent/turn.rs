//! A turn of the agent's loop, in real time and in the tests' simulated time.

use std::cell::RefCell;

use headway_cc::Duration;

use super::{Agent, Kernel, Wait};
use crate::error::Result;

/// The most messages that are read in one turn. Messages may come faster than they are read, and
/// clocks, signals and the mailbox need their turn. Reading this many takes less than a
/// millisecond; the turn's decisions ([`Shares::TURN`](super::shares::Shares::TURN)) come on top.
const MOST_MESSAGES: usize = 4096;
/// The longest sleep. Messages that do not wake the agent are read at least this often, such as
/// those of a policy inside the kernel, which sends no requests. A request that finds no room in
/// the ring does not wake the agent either: the agent makes room in half of the time that the guard
/// grants, and the flow sends the request again.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// Serves what has come. Returns how to wait for the next turn. By then the program knows whether
/// it has to wake the agent. `read` gives the agent at most the given number of messages, and
/// returns how many there were.
///
/// # Errors
/// The error of `read`.
pub fn turn<K: Kernel>(
    agent: &RefCell<Agent<K>>,
    mut read: impl FnMut(usize) -> Result<usize>,
) -> Result<Wait> {
    agent.borrow_mut().set_awake(true);
    let mut wait = look(agent, &mut read)?;
    if matches!(wait, Wait::Sleep(_)) {
        // A request that came meanwhile has not woken the agent, so it reads once more before it
        // sleeps.
        agent.borrow_mut().set_awake(false);
        wait = look(agent, &mut read)?;
    }
    Ok(match wait {
        Wait::Sleep(time) => Wait::Sleep(time.min(LONGEST_WAIT)),
        Wait::Look | Wait::Nap(_) => {
            agent.borrow_mut().set_awake(true);
            wait
        }
    })
}

fn look<K: Kernel>(
    agent: &RefCell<Agent<K>>,
    read: &mut impl FnMut(usize) -> Result<usize>,
) -> Result<Wait> {
    let count = read(MOST_MESSAGES)?;
    let mut agent = agent.borrow_mut();
    let now = agent.now();
    let wait = agent.on_timers(now);
    Ok(match count < MOST_MESSAGES {
        true => wait,
        false => Wait::Nap(Duration::ZERO),
    })
}
