//! A learned controller: monitor, clock, policy and base controller.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use headway_cc::{
    CongestionControl, Control, Duration, Feedback, NetworkView, PathModel, Probe, Rto, Sent,
    Setup, Stamp, Tag, Time,
};

use headway_fixed::{Limits, Verdict};

use crate::dqn::Step;
use crate::host::Host;
use crate::nn::Network;
use crate::{
    AgentSpec, Answer, BaseController, Decider, FlowGuard, Interval, NeededStats, Record, SpecError,
};

/// A policy: it decides.
pub trait Policy: Debug + Send + 'static {
    /// Answers an observation; `None` if the answer will come from outside ([`Learned::act`]). A
    /// policy that learns uses `interval`, which covers the time since the last decision.
    fn decide(&mut self, observation: &[f32], interval: &Interval) -> Option<Answer>;

    /// Its newest answer was not carried out: the guard refused it, or the base controller was no
    /// longer in congestion avoidance. That answer does not cause what follows.
    fn on_refused(&mut self) {}

    /// The network of a policy that learns, and its number of gradient steps. Another flow can
    /// continue with it.
    fn learned(&self) -> Option<(&Network, u64)> {
        None
    }

    /// Lets another thread take the policy's gradient steps, if there are any.
    fn step_on_thread(&mut self, _: &SyncSender<Step>) {}

    /// Has the policy stopped learning for good, and kept what it had learned? It does so after a
    /// loss that is not finite, or when the learning thread has ended.
    fn has_ended_learning(&self) -> bool {
        false
    }

    /// What its host reads of an interval besides the observation, such as an environment's
    /// measurements.
    fn needed_stats(&self) -> NeededStats {
        NeededStats::default()
    }

    /// Named values for recordings.
    fn probe(&self, _: &mut dyn Probe) {}
}

impl Policy for Box<dyn Policy> {
    fn decide(&mut self, observation: &[f32], interval: &Interval) -> Option<Answer> {
        (**self).decide(observation, interval)
    }

    fn on_refused(&mut self) {
        (**self).on_refused();
    }

    fn learned(&self) -> Option<(&Network, u64)> {
        (**self).learned()
    }

    fn step_on_thread(&mut self, thread: &SyncSender<Step>) {
        (**self).step_on_thread(thread);
    }

    fn has_ended_learning(&self) -> bool {
        (**self).has_ended_learning()
    }

    fn needed_stats(&self) -> NeededStats {
        (**self).needed_stats()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        (**self).probe(probe);
    }
}

/// A policy whose answers come from outside, as in training.
#[derive(Clone, Copy, Debug, Default)]
pub struct External;

impl Policy for External {
    fn decide(&mut self, _: &[f32], _: &Interval) -> Option<Answer> {
        None
    }

    /// A reward may use any feature.
    fn needed_stats(&self) -> NeededStats {
        NeededStats { averages: true }
    }
}

/// A learned controller.
#[derive(Debug)]
pub struct Learned<P> {
    spec: Arc<AgentSpec>,
    base: BaseController,
    decider: Decider<P>,
    host: Host<f32>,
    /// The time of the newest request.
    requested: Time,
    awaits_answer: bool,
}

impl<P: Policy> Learned<P> {
    /// The controller of one flow. Inference and messages take time: an answer arrives `latency`
    /// after the observation, and takes effect with the next acknowledgement, as in a kernel (Owl,
    /// Fig. 2). Without latency it takes effect at once.
    ///
    /// # Errors
    /// [`SpecError`] if the spec cannot be carried out.
    pub fn new(
        spec: Arc<AgentSpec>,
        setup: &Setup,
        policy: P,
        latency: Duration,
    ) -> Result<Learned<P>, SpecError> {
        spec.check()?;
        Ok(Learned {
            base: BaseController::new(&spec.base, &spec.action, setup)?,
            decider: Decider::new(&spec, setup.start, policy)?,
            host: Host::new(setup, latency),
            requested: setup.start,
            awaits_answer: false,
            spec,
        })
    }

    /// Adds the kernel's guard between the policy and the base controller (`docs/guard.md`).
    #[must_use]
    pub fn guarded(mut self, limits: Limits) -> Learned<P> {
        self.host.guard(limits);
        self
    }

    /// The last observation of the policy.
    pub fn observation(&self) -> &[f32] {
        self.decider.observation()
    }

    /// The interval that ended with the last decision.
    pub fn interval(&self) -> &Interval {
        self.decider.interval()
    }

    /// Does a request wait for its answer?
    pub fn awaits_answer(&self) -> bool {
        self.awaits_answer
    }

    /// Takes an answer. The host has to read [`control`](CongestionControl::control) and the next
    /// timer again. The answer's interval takes effect at once, whatever the latency of its action.
    pub fn act(&mut self, now: Time, answer: Answer) {
        self.awaits_answer = false;
        self.decider.choose_interval(answer);
        let answer = answer.action;
        match self.host.latency.is_zero() {
            true => self.carry_out(now, (self.requested, now), answer, Duration::ZERO),
            false => self.host.send(now, self.requested, answer),
        }
    }

    /// The run ends, and with it the current interval, which the last observation shows. No more
    /// decisions follow.
    pub fn conclude(&mut self, now: Time) {
        self.decider.conclude(now);
    }

    fn carry_out(
        &mut self,
        now: Time,
        (requested, answered): (Time, Time),
        answer: f32,
        age: Duration,
    ) {
        let guard = self.host.guard.as_mut();
        let is_allowed = guard.is_none_or(|guard| guard.answer(requested, answered, now));
        // The base controller may have left congestion avoidance meanwhile.
        if is_allowed && self.base.may_act() {
            let action = self.spec.action.action(answer);
            let Host {
                setup, rtt, guard, ..
            } = &mut self.host;
            (self.base).act(now, setup.mss, rtt, action, guard.as_mut());
            self.decider.on_action(age);
        } else if requested == self.requested {
            self.decider.policy_mut().on_refused();
        }
    }

    /// Carries out the answers that have arrived.
    fn carry_out_due(&mut self, now: Time) {
        while let Some((at, requested, answer)) = self.host.arrived(now) {
            let age = now.since(at) + self.host.latency;
            self.carry_out(now, (requested, at), answer, age);
        }
    }

    /// As report() in flow.h does: the guard judges first, so the record says who controls the
    /// flow.
    fn take(&mut self, record: &Record) {
        self.judge(record);
        let is_fine = |guard: &FlowGuard| guard.guard().is_fine();
        let mut record = *record;
        if !self.host.guard.as_ref().is_none_or(is_fine) {
            record.flags |= Record::TRIPPED;
        }
        self.decider.on_record(&record);
        self.decide_if_due(record.now());
    }

    /// The guard may take the flow from the policy, or give it back.
    fn judge(&mut self, record: &Record) {
        let Some(guard) = &mut self.host.guard else {
            return;
        };
        match guard.judge(record) {
            Verdict::Policy | Verdict::Fallback => {}
            Verdict::Trip => {
                let start = guard.restart(record, &self.base.controller().control());
                match &mut self.base {
                    BaseController::Base(scheme) => scheme.go_alone(start.0, start.1),
                    BaseController::Rate(_) | BaseController::Tunable(_) => {
                        guard.start_fallback(start)
                    }
                }
            }
            Verdict::Resume => {
                let left = guard.end_fallback();
                (self.base).return_to_policy(&self.spec.base, left, &self.host.rtt);
            }
        }
    }

    /// The controller of the flow: the base controller, or the guard's Cubic.
    fn controller(&self) -> &dyn CongestionControl {
        self.host.controller(self.base.controller())
    }

    /// The controller's model of the path; the guard's Cubic has none.
    fn model(&self) -> Option<PathModel> {
        match self.host.fallback_cubic() {
            Some(_) => None,
            None => self.base.model(),
        }
    }

    fn decide_if_due(&mut self, now: Time) {
        if !self.decider.is_due(now) || self.awaits_answer || !self.base.may_act() {
            return;
        }
        self.requested = now;
        if let Some(guard) = &mut self.host.guard {
            guard.ask(now);
        }
        match self.decider.decide(now) {
            Some(answer) => self.act(now, answer),
            None => self.awaits_answer = true,
        }
    }
}

impl<P: Policy> CongestionControl for Learned<P> {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.host.on_sent(self.base.controller_mut(), sent)
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.host.on_feedback(self.base.controller_mut(), feedback);
        self.carry_out_due(feedback.now);
        let control = self.controller().control();
        let record = self.host.record(feedback, &control);
        self.take(&record.with_model(self.model()));
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        let record = self.host.on_rto(self.base.controller_mut(), rto);
        self.take(&record.with_model(self.model()));
    }

    fn on_idle(&mut self, now: Time, idle: Duration) {
        let base = self.base.controller_mut();
        (self.host).tell(base, |controller| controller.on_idle(now, idle));
    }

    fn on_network(&mut self, now: Time, view: &NetworkView) {
        self.decider.on_network(now, view);
        let base = self.base.controller_mut();
        (self.host).tell(base, |controller| controller.on_network(now, view));
    }

    fn next_timer(&self) -> Time {
        let clock = match self.awaits_answer || !self.base.may_act() {
            true => Time::NEVER,
            false => self.decider.next_timer(),
        };
        clock.min(self.base.controller().next_timer())
    }

    fn on_timer(&mut self, now: Time) {
        if self.base.controller().next_timer() <= now {
            self.base.controller_mut().on_timer(now);
        }
        self.decide_if_due(now);
    }

    fn control(&self) -> Control {
        self.controller().control()
    }

    fn stamp(&self) -> Stamp {
        self.controller().stamp()
    }

    fn owns_recovery(&self) -> bool {
        self.controller().owns_recovery()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        self.controller().probe(probe);
        self.decider.policy().probe(probe);
        self.host.probe_guard(probe);
    }

    fn steered(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}
