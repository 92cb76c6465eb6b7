//! A turn of the agent's loop, also of the one in simulated time.

use std::cell::RefCell;

use headway_cc::Duration;

use super::{Agent, Kernel, Wait};
use crate::error::Result;

/// Read in one turn: messages may come faster than they are read, and clocks, signals and the
/// mailbox have their turn. This many take less than a millisecond, beside the decisions of the
/// turn ([`Shares::TURN`](super::shares::Shares::TURN)).
const MOST_MESSAGES: usize = 4096;
/// Messages that wake nobody are read at least so often: a policy inside the kernel asks nothing.
/// So is a question whose wake-up found no room in the ring, in half of the time that the guard
/// grants.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// Serves what there is. Returns how to wait for the next turn: the program knows by then whether
/// it has to wake the agent. `read` gives the agent at most this many messages, and returns how
/// many.
///
/// # Errors
/// That of `read`.
pub fn turn<K: Kernel>(
    agent: &RefCell<Agent<K>>,
    mut read: impl FnMut(usize) -> Result<usize>,
) -> Result<Wait> {
    agent.borrow_mut().set_awake(true);
    let mut wait = look(agent, &mut read)?;
    if matches!(wait, Wait::Sleep(_)) {
        // Who has asked meanwhile has woken nobody: it looks once more before it sleeps.
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
