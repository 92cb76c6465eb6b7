//! The progress of a batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use headway_cc::Duration;

/// The progress of a batch; shared with its watcher.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    finished: AtomicUsize,
    done_ns: AtomicU64,
    cancelled: AtomicBool,
}

impl Progress {
    /// Runs finished.
    pub fn finished(&self) -> usize {
        self.0.finished.load(Ordering::Relaxed)
    }

    /// Seconds that runs have completed, by their own clocks, over all runs.
    pub fn done_s(&self) -> f64 {
        self.0.done_ns.load(Ordering::Relaxed) as f64 / 1e9
    }

    /// Asks the batch to stop soon; finished runs are kept.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }

    pub(super) fn finish_one(&self) {
        self.0.finished.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds what a run has completed. Returns whether to continue.
    pub(super) fn go_on(&self, done: Duration) -> bool {
        let ns = done.as_nanos();
        self.0.done_ns.fetch_add(ns, Ordering::Relaxed);
        !self.is_cancelled()
    }
}
