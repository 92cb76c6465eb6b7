//! The threads that take the gradient steps of flows that learn.
//!
//! One computes, only while no ordinary thread wants its processor (`SCHED_IDLE`). It may lose the
//! processor at any point, for longer than the guard waits for an answer. So it takes no lock that
//! the thread that answers may want, and a second thread, an ordinary one, stands between the two:
//! - The first allocates and frees nothing. `free` takes malloc's lock of the arena that memory
//!   came from, and learners come from the thread that answers. The second thread frees those
//!   whose flows have ended.
//! - The first shares no channel with the thread that answers: one end of a channel waits while the
//!   other has half sent or half taken a message.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;

use headway_policy::dqn::Step;

use crate::error::{Error, Result};
use crate::system::priority;

/// Steps that wait for the threads at most. A flow asks for one at a time.
const MOST_WAITING: usize = 1024;

/// Starts the threads. They have room for a step of each of this many learners, and take them in
/// the order in which they come. They end with the last sender.
///
/// # Errors
/// One line, if the system has no room for a thread.
pub fn start(learners: usize) -> Result<SyncSender<Step>> {
    let (sender, steps) = sync_channel(learners.clamp(1, MOST_WAITING));
    let (to_idle, given) = sync_channel(1);
    let (back, taken) = sync_channel(1);
    spawn(CARRIER, move || carry(&steps, &to_idle, &taken))?;
    spawn(NAME, move || {
        if let Err(error) = priority::yield_to_all() {
            tracing::warn!(%error, "the thread that learns has the same priority as the one that answers");
        }
        take(&given, &back);
    })?;
    Ok(sender)
}

/// As the system shows the one that computes, and the other.
pub const NAME: &str = "gradients";
pub const CARRIER: &str = "learners";

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = Builder::new().name(name.to_owned()).spawn(run);
    thread
        .map(drop)
        .map_err(|e| Error::failed("cannot start the threads that learn", e))
}

fn carry(steps: &Receiver<Step>, to_idle: &SyncSender<Step>, taken: &Receiver<Step>) {
    for step in steps {
        let step = to_idle.send(step).ok().and_then(|()| taken.recv().ok());
        let Some(step) = step else { return };
        step.give_back();
    }
}

/// All that the idle thread does.
pub fn take(given: &Receiver<Step>, back: &SyncSender<Step>) {
    for mut step in given {
        step.take();
        if back.send(step).is_err() {
            return;
        }
    }
}
