//! The threads that take the gradient steps of flows that learn.
//!
//! The first thread computes, only while no ordinary thread wants its processor (`SCHED_IDLE`). It
//! may lose the processor at any point, for longer than the guard waits for an answer. So it must
//! not hold a lock that the answering thread may want. A second thread, an ordinary one, stands
//! between the two:
//! - The first thread allocates and frees nothing. `free` takes malloc's lock of the arena that
//!   memory came from, and learners come from the answering thread. The second thread frees the
//!   learners of ended flows.
//! - The first thread shares no channel with the answering thread: one end of a channel waits while
//!   the other is in the middle of sending or taking a message.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use headway_policy::dqn::Step;

use crate::error::Result;
use crate::system::priority;

/// The most steps that wait for the threads. A flow asks for one step at a time.
const MOST_WAITING: usize = 1024;

/// Starts the threads. They have room for one step of each of `learners`, and take the steps in the
/// order in which they come. They end with the last sender.
///
/// # Errors
/// One line, if the system has no room for a thread.
pub fn start(learners: usize) -> Result<SyncSender<Step>> {
    let (sender, steps) = sync_channel(learners.clamp(1, MOST_WAITING));
    let (to_idle, given) = sync_channel(1);
    let (back, taken) = sync_channel(1);
    priority::spawn(CARRIER, move || carry(&steps, &to_idle, &taken))?;
    priority::spawn(NAME, move || {
        if let Err(error) = priority::yield_to_all() {
            tracing::warn!(%error, "the thread that learns keeps the priority of the thread that answers");
        }
        take(&given, &back);
    })?;
    Ok(sender)
}

/// The name of the thread that computes, as the system shows it.
pub const NAME: &str = "gradients";
/// The name of the thread between that one and the answering thread.
pub const CARRIER: &str = "learners";

fn carry(steps: &Receiver<Step>, to_idle: &SyncSender<Step>, taken: &Receiver<Step>) {
    for step in steps {
        let step = to_idle.send(step).ok().and_then(|()| taken.recv().ok());
        let Some(step) = step else { return };
        step.give_back();
    }
}

/// The work of the thread that computes.
pub fn take(given: &Receiver<Step>, back: &SyncSender<Step>) {
    for mut step in given {
        step.take();
        if back.send(step).is_err() {
            return;
        }
    }
}
