//! The threads of a flow's two ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};

use headway_cc::Duration;

use crate::fitness::cpu_wait;
use crate::host::{HostError, ReceiverEnd, ReceiverReport, SenderEnd, SenderReport};
use crate::sys::Clock;

/// Both ends of a flow, each on a thread of its own.
#[derive(Debug)]
pub(super) struct RunningEnds<'s> {
    sender: Running<'s, SenderReport>,
    receiver: Running<'s, ReceiverReport>,
    /// Whether it is our transport, which waits if its threads do. The kernel's does not.
    is_udp: bool,
}

/// The thread of an end: its report, and how long it has waited for a CPU.
type Running<'s, T> = ScopedJoinHandle<'s, Result<(T, Option<Duration>), HostError>>;

/// The reports of both ends.
#[derive(Debug)]
pub(super) struct EndsReport {
    pub sender: SenderReport,
    /// How long an end waited for a CPU, by [`cpu_wait`]; `None` where it does not matter.
    pub host_wait: Option<Duration>,
    /// Datagrams that the kernel would not take from either end.
    pub not_sent: u64,
}

impl<'s> RunningEnds<'s> {
    /// Starts both ends; they begin to work at time zero. If one cannot go on, it sets `over`,
    /// which ends the run.
    pub fn start(
        scope: &'s Scope<'s, '_>,
        (sender, receiver): (SenderEnd, ReceiverEnd),
        clock: Clock,
        over: &'s AtomicBool,
    ) -> RunningEnds<'s> {
        RunningEnds {
            is_udp: matches!(sender, SenderEnd::Udp(_)),
            sender: scope.spawn(move || {
                clock.wait_for_epoch();
                let report = stopping(over, sender.run(clock, over))?;
                Ok((report, cpu_wait()))
            }),
            receiver: scope.spawn(move || {
                clock.wait_for_epoch();
                let report = stopping(over, receiver.run(clock, over))?;
                Ok((report, cpu_wait()))
            }),
        }
    }

    /// Waits for both.
    pub fn join(self) -> Result<EndsReport, String> {
        let (sent, received) = (join(self.sender), join(self.receiver));
        let ((sender, sender_wait), (receiver, receiver_wait)) = (sent?, received?);
        Ok(EndsReport {
            not_sent: sender.failures.not_sent + receiver.failures.not_sent,
            sender,
            host_wait: sender_wait.max(receiver_wait).filter(|_| self.is_udp),
        })
    }
}

fn stopping<T, E>(over: &AtomicBool, result: Result<T, E>) -> Result<T, E> {
    if result.is_err() {
        over.store(true, Ordering::Relaxed);
    }
    result
}

/// Waits for a thread.
pub(super) fn join<T, E: ToString>(
    thread: ScopedJoinHandle<'_, Result<T, E>>,
) -> Result<T, String> {
    const DIED: &str = "a thread of the run died (a defect of Headway: please report it)";
    let ended = thread.join().map_err(|_| DIED.to_owned())?;
    ended.map_err(|e| e.to_string())
}
