//! The kernel's own agent of a rate, hosted in simulated time and over real packets.

use std::collections::VecDeque;
use std::sync::Arc;

use headway_cc::{
    CongestionControl, Control, Duration, Feedback, Probe, Rate, Rto, Sent, Setup, Tag, Time,
};
use headway_fixed::RateAgent;
use zerocopy::transmute_ref;

use super::Quantised;
use crate::{RateControl, Record, Reporter};

/// What `rate_agent.h` does of a flow's records: the bits that it computes in the kernel. It decides at records only,
/// as there is no timer there.
#[derive(Debug)]
pub struct Int8Controller {
    policy: Arc<Quantised>,
    agent: RateAgent,
    reporter: Reporter,
    beneath: RateControl,
    /// How long a decision takes to take effect; the kernel's own takes none.
    latency: Duration,
    /// Rates on their way, and when each comes.
    on_their_way: VecDeque<(Time, Rate)>,
}

impl Int8Controller {
    /// For one flow.
    pub fn new(policy: Arc<Quantised>, setup: &Setup, latency: Duration) -> Int8Controller {
        let agent = RateAgent::new(policy.policy(), setup.start.as_nanos());
        Int8Controller {
            beneath: RateControl::new(setup.mss, Rate::from_bps(agent.rate() * 8)),
            reporter: Reporter::new(setup.mss),
            on_their_way: VecDeque::new(),
            policy,
            agent,
            latency,
        }
    }

    fn take(&mut self, record: &Record) {
        let before = self.agent.decisions();
        let rate = (self.agent).record(self.policy.policy(), transmute_ref!(record));
        if self.agent.decisions() != before {
            let rate = Rate::from_bps(rate * 8);
            match self.latency.is_zero() {
                true => self.beneath.set(rate),
                false => (self.on_their_way).push_back((record.now() + self.latency, rate)),
            }
        }
    }

    /// Those rates that have come meanwhile.
    fn carry_out_due(&mut self, now: Time) {
        while let Some(&(at, rate)) = self.on_their_way.front()
            && at <= now
        {
            self.on_their_way.pop_front();
            self.beneath.set(rate);
        }
    }
}

impl CongestionControl for Int8Controller {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.reporter.on_sent(sent);
        self.beneath.on_sent(sent)
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.beneath.on_feedback(feedback);
        self.carry_out_due(feedback.now);
        let record = self.reporter.on_feedback(feedback, &self.beneath.control());
        self.take(&record);
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.beneath.on_rto(rto);
        let record = self.reporter.on_rto(rto, &self.beneath.control());
        self.take(&record);
    }

    fn control(&self) -> Control {
        self.beneath.control()
    }

    fn owns_recovery(&self) -> bool {
        self.beneath.owns_recovery()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        self.beneath.probe(probe);
        probe.value("decisions", self.agent.decisions().into());
    }
}
