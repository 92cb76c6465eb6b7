//! The kernel's own agent of a rate, hosted in simulated time and over real packets.

use std::collections::VecDeque;
use std::sync::Arc;

use headway_cc::{
    CongestionControl, Control, Duration, Feedback, Probe, Rate, Rto, RttStats, Sent, Setup, Tag,
    Time,
};
use headway_fixed::{Judgement, Limits, RateAgent};
use zerocopy::transmute_ref;

use super::Quantised;
use crate::beneath::rate_of;
use crate::{Guarding, RateControl, Record, Reporter};

/// What `rate_agent.h` does of a flow's records: the bits that it computes in the kernel. It decides at records only,
/// as there is no timer there.
#[derive(Debug)]
pub struct Int8Controller {
    policy: Arc<Quantised>,
    setup: Setup,
    agent: RateAgent,
    reporter: Reporter,
    beneath: RateControl,
    /// How long a decision takes to take effect; the kernel's own takes none.
    latency: Duration,
    /// Rates on their way: when each comes, and when it was decided.
    on_their_way: VecDeque<(Time, Time, Rate)>,
    rtt: RttStats,
    guard: Option<Guarding>,
}

impl Int8Controller {
    /// For one flow.
    pub fn new(policy: Arc<Quantised>, setup: &Setup, latency: Duration) -> Int8Controller {
        let agent = RateAgent::new(policy.policy(), setup.start.as_nanos());
        Int8Controller {
            beneath: RateControl::new(setup.mss, Rate::from_bps(agent.rate() * 8)),
            reporter: Reporter::new(setup.mss),
            on_their_way: VecDeque::new(),
            rtt: RttStats::default(),
            guard: None,
            setup: *setup,
            policy,
            agent,
            latency,
        }
    }

    /// With the guard between the policy and the rate (`docs/guard.md`).
    #[must_use]
    pub fn guarded(self, limits: Limits) -> Int8Controller {
        Int8Controller {
            guard: Some(Guarding::new(&self.setup, limits)),
            ..self
        }
    }

    fn take(&mut self, record: &Record) {
        self.judge(record);
        let before = self.agent.decisions();
        let rate = (self.agent).record(self.policy.policy(), transmute_ref!(record));
        if self.agent.decisions() != before {
            let (now, rate) = (record.now(), Rate::from_bps(rate * 8));
            if let Some(guard) = &mut self.guard {
                guard.ask(now);
            }
            match self.latency.is_zero() {
                true => self.carry_out(now, now, now, rate),
                false => (self.on_their_way).push_back((now + self.latency, now, rate)),
            }
        }
    }

    fn carry_out(&mut self, now: Time, decided: Time, answered: Time, rate: Rate) {
        match &mut self.guard {
            Some(guard) => {
                if guard.answer(decided, answered, now) {
                    self.beneath.set(guard.rate(rate));
                }
            }
            None => self.beneath.set(rate),
        }
    }

    /// Those rates that have come meanwhile.
    fn carry_out_due(&mut self, now: Time) {
        while let Some(&(at, decided, rate)) = self.on_their_way.front()
            && at <= now
        {
            self.on_their_way.pop_front();
            self.carry_out(now, decided, at, rate);
        }
    }

    /// The guard may take the flow from the policy, or give it back: the policy goes on from what there is.
    fn judge(&mut self, record: &Record) {
        let Some(guard) = &mut self.guard else { return };
        match guard.judge(record) {
            Judgement::Policys => return,
            Judgement::Cubics => {}
            Judgement::Trips => guard.stand_in(guard.restart(record, &self.beneath.control())),
            Judgement::Returns => {
                let left = guard.stand_down();
                if let Some(rate) = left.and_then(|cwnd| rate_of(cwnd, &self.rtt)) {
                    self.beneath.set(rate);
                }
            }
        }
        let cubics = guard.substitute().map(|cubic| cubic.control().cwnd);
        let rate = cubics.and_then(|cwnd| rate_of(cwnd, &self.rtt));
        self.agent
            .set_rate(rate.unwrap_or(self.beneath.rate()).as_bps() / 8);
    }

    fn controller(&self) -> &dyn CongestionControl {
        let substitute = self.guard.as_ref().and_then(Guarding::substitute);
        substitute.unwrap_or(&self.beneath)
    }

    /// Tells the base controller, and the guard's Cubic if there is one.
    fn tell(&mut self, mut news: impl FnMut(&mut dyn CongestionControl)) {
        news(&mut self.beneath);
        if let Some(cubic) = self.guard.as_mut().and_then(Guarding::substitute_mut) {
            news(cubic);
        }
    }
}

impl CongestionControl for Int8Controller {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.reporter.on_sent(sent);
        self.tell(|controller| _ = controller.on_sent(sent));
        Tag::NONE
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        match &self.guard {
            Some(guard) => {
                let heard = guard.heard(feedback);
                self.tell(|controller| controller.on_feedback(&heard));
            }
            None => self.beneath.on_feedback(feedback),
        }
        self.rtt = feedback.rtt_stats;
        self.carry_out_due(feedback.now);
        let control = self.control();
        let record = self.reporter.on_feedback(feedback, &control);
        self.take(&record);
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.tell(|controller| controller.on_rto(rto));
        let control = self.control();
        let record = self.reporter.on_rto(rto, &control);
        self.take(&record);
    }

    fn control(&self) -> Control {
        self.controller().control()
    }

    fn on_idle(&mut self, now: Time, idle: Duration) {
        self.tell(|controller| controller.on_idle(now, idle));
    }

    fn owns_recovery(&self) -> bool {
        self.controller().owns_recovery()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        self.controller().probe(probe);
        if let Some(guard) = &self.guard {
            guard.probe(probe);
        }
        probe.value("decisions", self.agent.decisions().into());
    }
}
