//! What the ends of a flow hand back.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use headway_cc::{Bytes, Duration, Time};
use headway_record::{FlowMeter, Grid, GridSample, LogHistogram};
use headway_world::FlowPlan;

use crate::sys::{Clock, cpu_time};

/// Failures at an end's own socket, not in the network. If there are many, losses are unexplained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// Datagrams that the kernel did not take.
    pub not_sent: u64,
    /// Datagrams that arrived and were dropped because the socket was full.
    pub not_read: u64,
    /// Datagrams of another flow, or not of our transport.
    pub strange: u64,
}

/// What a sender counted.
#[derive(Clone, Debug)]
pub struct SenderReport {
    /// Only RTT samples. For TCP it is empty: the emulator takes them.
    pub meter: FlowMeter,
    /// Only the packets taken for lost, and the sender's state as each bin ended.
    pub grid: Option<Grid>,
    /// Bytes of IP packets that left, including retransmissions.
    pub sent: Bytes,
    /// Bytes that the sender took for lost; for TCP, bytes that it retransmitted.
    pub lost: Bytes,
    /// When all its data had been acknowledged.
    pub finished: Option<Time>,
    /// How late timers woke it (UDP only).
    pub lateness: LogHistogram,
    /// Failures at its socket (UDP only).
    pub failures: Failures,
    /// Processor time of its thread.
    pub cpu: Duration,
}

/// What a receiver counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceiverReport {
    /// Bytes that arrived: for UDP, bytes of IP packets; for TCP, bytes of its stream.
    pub received: Bytes,
    /// When all the flow's data had arrived.
    pub complete: Option<Time>,
    /// Failures at its socket (UDP only).
    pub failures: Failures,
    /// Processor time of its thread.
    pub cpu: Duration,
}

/// Says, while a flow's receiver runs, whether all the flow's data has arrived.
#[derive(Clone, Debug, Default)]
pub struct Completion(Arc<AtomicBool>);

impl Completion {
    /// Has all the flow's data arrived?
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

    /// Notes the number of bytes that the sender has taken for lost so far.
    pub(super) fn note_lost(&mut self, now: Time, lost: Bytes) {
        if let Some(grid) = &mut self.grid
            && lost > self.lost
        {
            grid.on_lost(now, lost.saturating_sub(self.lost));
        }
        self.lost = lost;
    }
}

/// The ends of a series' bins, from the flow's start to its stop.
#[derive(Debug)]
pub(super) struct Bins {
    bin: Option<Duration>,
    /// The next end; [`Time::NEVER`] without a series.
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

    /// Notes the flow's state for every bin that has ended by `now`.
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

/// Measures the processor time of the calling thread, from the start of an end.
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

/// Sleeps until `at`; returns early if `over` is set.
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
