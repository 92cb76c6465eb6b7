//! Hosts any kind of policy in simulated time and over real packets.

use std::collections::VecDeque;

use headway_cc::{
    CongestionControl, Control, Duration, Feedback, Probe, Rto, RttStats, Sent, Setup, Tag, Time,
};
use headway_fixed::Limits;

use crate::{FlowGuard, Record, RecordBuilder};

/// Builds a policy's records, delays its decisions `D`, and applies the guard between it and the
/// base controller, which is `base` in each method.
#[derive(Debug)]
pub struct Host<D> {
    /// The flow's setup.
    pub setup: Setup,
    /// The RTT statistics of the newest feedback.
    pub rtt: RttStats,
    /// The guard, if the flow has one.
    pub guard: Option<FlowGuard>,
    /// The time from a decision until it takes effect.
    pub latency: Duration,
    records: RecordBuilder,
    /// Decisions that have not taken effect: when each arrives, the time of its request, and the
    /// decision.
    pending: VecDeque<(Time, Time, D)>,
}

impl<D: Copy> Host<D> {
    /// The host of one flow without a guard.
    pub fn new(setup: &Setup, latency: Duration) -> Host<D> {
        Host {
            setup: *setup,
            rtt: RttStats::default(),
            guard: None,
            latency,
            records: RecordBuilder::new(setup.mss),
            pending: VecDeque::new(),
        }
    }

    /// Guards the flow from now on.
    pub fn guard(&mut self, limits: Limits) {
        self.guard = Some(FlowGuard::new(&self.setup, limits));
    }

    /// The controller of the flow: the base controller, or Cubic in fallback.
    pub fn controller<'a>(&'a self, base: &'a dyn CongestionControl) -> &'a dyn CongestionControl {
        self.fallback_cubic().unwrap_or(base)
    }

    /// The guard's Cubic, in fallback.
    pub fn fallback_cubic(&self) -> Option<&dyn CongestionControl> {
        self.guard.as_ref().and_then(FlowGuard::fallback_cubic)
    }

    /// Calls the base controller, and the guard's Cubic in fallback.
    pub fn tell(
        &mut self,
        base: &mut dyn CongestionControl,
        mut news: impl FnMut(&mut dyn CongestionControl),
    ) {
        news(base);
        if let Some(cubic) = self.guard.as_mut().and_then(FlowGuard::fallback_cubic_mut) {
            news(cubic);
        }
    }

    /// A packet was sent.
    pub fn on_sent(&mut self, base: &mut dyn CongestionControl, sent: &Sent) -> Tag {
        self.records.on_sent(sent);
        let mut tag = Tag::NONE;
        self.tell(base, |controller| tag = controller.on_sent(sent));
        tag
    }

    /// Passes acknowledgements on. The policy's record of them comes from [`record`](Self::record),
    /// once decisions that have arrived are carried out.
    pub fn on_feedback(&mut self, base: &mut dyn CongestionControl, feedback: &Feedback<'_>) {
        match &self.guard {
            Some(guard) => {
                let for_cubic = guard.feedback_for_cubic(feedback);
                self.tell(base, |controller| controller.on_feedback(&for_cubic));
            }
            None => base.on_feedback(feedback),
        }
        self.rtt = feedback.rtt_stats;
    }

    /// The record of acknowledgements after which the flow's controller allows `control`.
    pub fn record(&mut self, feedback: &Feedback<'_>, control: &Control) -> Record {
        self.records.on_feedback(feedback, control)
    }

    /// The retransmission timer ran out.
    pub fn on_rto(&mut self, base: &mut dyn CongestionControl, rto: &Rto<'_>) -> Record {
        self.tell(base, |controller| controller.on_rto(rto));
        let control = self.controller(base).control();
        self.records.on_rto(rto, &control)
    }

    /// Sends a decision, made now for a request of the time `requested`. It arrives after the
    /// latency.
    pub fn send(&mut self, now: Time, requested: Time, decision: D) {
        self.pending
            .push_back((now + self.latency, requested, decision));
    }

    /// The next decision that has arrived by now: when it arrived, the time of its request, and the
    /// decision.
    pub fn arrived(&mut self, now: Time) -> Option<(Time, Time, D)> {
        let has_come = |(at, ..): &&(Time, Time, D)| *at <= now;
        self.pending.front().filter(has_come)?;
        self.pending.pop_front()
    }

    /// Named values of the guard, for recordings.
    pub fn probe_guard(&self, probe: &mut dyn Probe) {
        if let Some(guard) = &self.guard {
            guard.probe(probe);
        }
    }
}
