//! Hosts the kernel's own rate agent in simulated time and over real packets.

use std::sync::Arc;

use headway_cc::{
    CongestionControl, Control, Duration, Feedback, Probe, Rate, Rto, Sent, Setup, Tag, Time,
};
use headway_fixed::{Limits, RateAgent, Verdict};
use zerocopy::transmute_ref;

use super::Quantised;
use crate::base::rate_of;
use crate::host::Host;
use crate::{RateControl, Record};

/// Runs `rate_agent.h` on a flow's records, with the same bits as in the kernel. As there, it
/// decides only at records, since the program has no timer.
#[derive(Debug)]
pub struct Int8Controller {
    policy: Arc<Quantised>,
    agent: RateAgent,
    base: RateControl,
    host: Host<Rate>,
}

impl Int8Controller {
    /// The controller of one flow. A decision takes effect after `latency`; in the kernel it does
    /// at once.
    pub fn new(policy: Arc<Quantised>, setup: &Setup, latency: Duration) -> Int8Controller {
        let agent = RateAgent::new(policy.policy(), setup.start.as_nanos());
        Int8Controller {
            base: RateControl::new(setup.mss, Rate::from_bps(agent.rate() * 8)),
            host: Host::new(setup, latency),
            policy,
            agent,
        }
    }

    /// Adds the guard between the policy and the rate (`docs/guard.md`).
    #[must_use]
    pub fn guarded(mut self, limits: Limits) -> Int8Controller {
        self.host.guard(limits);
        self
    }

    fn take(&mut self, record: &Record) {
        self.judge(record);
        let before = self.agent.decisions();
        let rate = (self.agent).record(self.policy.policy(), transmute_ref!(record));
        if self.agent.decisions() != before {
            let (now, rate) = (record.now(), Rate::from_bps(rate * 8));
            if let Some(guard) = &mut self.host.guard {
                guard.ask(now);
            }
            match self.host.latency.is_zero() {
                true => self.carry_out(now, now, now, rate),
                false => self.host.send(now, now, rate),
            }
        }
    }

    fn carry_out(&mut self, now: Time, decided: Time, answered: Time, rate: Rate) {
        match &mut self.host.guard {
            Some(guard) => {
                if guard.answer(decided, answered, now) {
                    self.base.set(guard.rate(rate));
                }
            }
            None => self.base.set(rate),
        }
    }

    /// Applies the rates that have arrived.
    fn carry_out_due(&mut self, now: Time) {
        while let Some((at, decided, rate)) = self.host.arrived(now) {
            self.carry_out(now, decided, at, rate);
        }
    }

    /// The guard may take the flow from the policy, or give it back. In fallback the agent's rate
    /// follows Cubic's window, so the policy goes on from there.
    fn judge(&mut self, record: &Record) {
        let Host { guard, rtt, .. } = &mut self.host;
        let Some(guard) = guard else { return };
        match guard.judge(record) {
            Verdict::Policy => return,
            Verdict::Fallback => {}
            Verdict::Trip => guard.start_fallback(guard.restart(record, &self.base.control())),
            Verdict::Resume => {
                let left = guard.end_fallback();
                if let Some(rate) = left.and_then(|cwnd| rate_of(cwnd, rtt)) {
                    self.base.set(rate);
                }
            }
        }
        let cubics = guard.fallback_cubic().map(|cubic| cubic.control().cwnd);
        let rate = cubics.and_then(|cwnd| rate_of(cwnd, rtt));
        self.agent
            .set_rate(rate.unwrap_or(self.base.rate()).as_bps() / 8);
    }
}

impl CongestionControl for Int8Controller {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.host.on_sent(&mut self.base, sent)
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.host.on_feedback(&mut self.base, feedback);
        self.carry_out_due(feedback.now);
        let control = self.control();
        let record = self.host.record(feedback, &control);
        self.take(&record);
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        let record = self.host.on_rto(&mut self.base, rto);
        self.take(&record);
    }

    fn control(&self) -> Control {
        self.host.controller(&self.base).control()
    }

    fn on_idle(&mut self, now: Time, idle: Duration) {
        (self.host).tell(&mut self.base, |controller| controller.on_idle(now, idle));
    }

    fn owns_recovery(&self) -> bool {
        self.host.controller(&self.base).owns_recovery()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        self.host.controller(&self.base).probe(probe);
        self.host.probe_guard(probe);
        probe.value("decisions", self.agent.decisions().into());
    }
}
