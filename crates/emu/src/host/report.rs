//! What the ends of a flow hand back.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use headway_cc::{Bytes, Duration, Time};
use headway_record::{FlowMeter, Grid, GridSample, LogHistogram};
use headway_world::FlowPlan;

use crate::sys::{Clock, cpu_time};

/// What went wrong at an end's own socket, not in the network: unexplained losses, if they are
/// many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// Datagrams that the kernel did not take.
    pub not_sent: u64,
    /// Datagrams that arrived and were dropped for want of room in the socket.
    pub not_read: u64,
    /// Datagrams that were not of this flow, or not of our transport.
    pub strange: u64,
}

/// What a sender counted.
#[derive(Clone, Debug)]
pub struct SenderReport {
    /// RTT samples, and nothing else. Of TCP none: the emulator takes them.
    pub meter: FlowMeter,
    /// What was taken for lost, and the sender as each bin ended, and nothing else.
    pub grid: Option<Grid>,
    /// Bytes of IP packets that left, retransmissions among them.
    pub sent: Bytes,
    /// Bytes that the sender took for lost; of TCP, what it retransmitted.
    pub lost: Bytes,
    /// When all its data had been acknowledged.
    pub finished: Option<Time>,
    /// By how much timers woke it late (UDP only).
    pub lateness: LogHistogram,
    /// At its socket (UDP only).
    pub failures: Failures,
    /// Processor time of its thread.
    pub cpu: Duration,
}

/// What a receiver counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceiverReport {
    /// Bytes that arrived: UDP, of IP packets; TCP, of its stream.
    pub received: Bytes,
    /// When all the flow's data had arrived.
    pub complete: Option<Time>,
    /// At its socket (UDP only).
    pub failures: Failures,
    /// Processor time of its thread.
    pub cpu: Duration,
}

/// Tells, while a flow's receiver runs, that all the flow's data has arrived.
#[derive(Clone, Debug, Default)]
pub struct Completion(Arc<AtomicBool>);

impl Completion {
    /// Has it all arrived?
    pub fn is_reached(&self) -> bool {
        self.0.load(Relaxed)
    }

    pub(super) fn reach(&self) {
        self.0.store(true, Relaxed);
    }
}

impl SenderReport {
    pub(super) fn new(plan: &FlowPlan) -> SenderReport {
        SenderReport {
            meter: FlowMeter::new(plan.measured_from),
            grid: plan.bin.map(Grid::new),
            sent: Bytes::ZERO,
            lost: Bytes::ZERO,
            finished: None,
            lateness: LogHistogram::default(),
            failures: Failures::default(),
            cpu: Duration::ZERO,
        }
    }

    /// The sender has now taken this number of bytes for lost.
    pub(super) fn note_lost(&mut self, now: Time, lost: Bytes) {
        if let Some(grid) = &mut self.grid
            && lost > self.lost
        {
            grid.on_lost(now, lost.saturating_sub(self.lost));
        }
        self.lost = lost;
    }
}

/// The ends of a series' bins, while the flow is there.
#[derive(Debug)]
pub(super) struct Bins {
    bin: Option<Duration>,
    /// The next end; never without a series.
    pub(super) next: Time,
}

impl Bins {
    pub(super) fn new(plan: &FlowPlan) -> Bins {
        let bin = plan.bin.filter(|bin| !bin.is_zero());
        let next = bin.map_or(Time::NEVER, |bin| {
            let passed = plan.start.as_nanos() / bin.as_nanos();
            Time::ZERO + bin * (passed + 1)
        });
        Bins { bin, next }
    }

    /// Notes the flow as it is in every bin that has ended by `now`.
    pub(super) fn close(
        &mut self,
        now: Time,
        report: &mut SenderReport,
        sample: impl Fn() -> GridSample,
    ) {
        let Some(bin) = self.bin else { return };
        while self.next <= now {
            if let Some(grid) = &mut report.grid {
                grid.on_bin_end(self.next, sample());
            }
            self.next += bin;
        }
    }
}

/// Processor time of the calling thread since it began to run an end.
#[derive(Debug)]
pub(super) struct Cpu(Duration);

impl Cpu {
    pub(super) fn start() -> Cpu {
        Cpu(cpu_time())
    }

    pub(super) fn used(&self) -> Duration {
        cpu_time().saturating_sub(self.0)
    }
}

/// Waits for `at` without a socket; returns before it if `over` is set.
pub(super) fn sleep_until(at: Time, clock: Clock, over: &AtomicBool) {
    const LONGEST: Duration = Duration::from_millis(50);
    while !over.load(Relaxed) {
        let left = at.since(clock.now());
        if left.is_zero() {
            return;
        }
        let nap = left.min(LONGEST).as_nanos();
        std::thread::sleep(std::time::Duration::from_nanos(nap));
    }
}
