//! The thread that takes the gradient steps of flows that learn.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;

use headway_policy::dqn::Step;

use crate::error::{Error, Result};

/// The lowest priority: where both threads share a processor, answers come first.
const NICE: i32 = 19;

/// Starts the thread. It has room for a step of each of so many learners, which ask for one at a
/// time, and takes them in the order in which they come. It ends with the last sender.
///
/// # Errors
/// One line, if the system has no room for a thread.
pub fn start(learners: usize) -> Result<SyncSender<Step>> {
    let (sender, steps) = sync_channel(learners.max(1));
    let thread = Builder::new().name("gradients".to_owned());
    thread
        .spawn(move || take(&steps))
        .map_err(|e| Error::failed("cannot start the thread that learns", e))?;
    Ok(sender)
}

fn take(steps: &Receiver<Step>) {
    // Of this thread alone: in Linux each has a priority of its own.
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::warn!(%error, "the thread that learns has the same priority as the one that answers");
    }
    steps.iter().for_each(Step::take);
}
