//! The thread that takes the gradient steps of flows that learn.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;

use headway_policy::dqn::Step;

use crate::error::{Error, Result};
use crate::system::priority;

/// Steps that wait for the thread at most. A flow asks for one at a time.
const MOST_WAITING: usize = 1024;

/// Starts the thread. It has room for a step of each of this many learners, and takes them in the
/// order in which they come. It ends with the last sender.
///
/// # Errors
/// One line, if the system has no room for a thread.
pub fn start(learners: usize) -> Result<SyncSender<Step>> {
    let (sender, steps) = sync_channel(learners.clamp(1, MOST_WAITING));
    let thread = Builder::new().name(NAME.to_owned());
    thread
        .spawn(move || take(&steps))
        .map_err(|e| Error::failed("cannot start the thread that learns", e))?;
    Ok(sender)
}

/// As the system shows it.
pub const NAME: &str = "gradients";

fn take(steps: &Receiver<Step>) {
    if let Err(error) = priority::yield_to_all() {
        tracing::warn!(%error, "the thread that learns has the same priority as the one that answers");
    }
    steps.iter().for_each(Step::take);
}
