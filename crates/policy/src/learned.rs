//! A learned controller: monitor, clock, policy, and what they steer.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;

use headway_cc::{
    CongestionControl, Control, Duration, Feedback, NetworkView, PathModel, Probe, Rto, RttStats,
    Sent, Setup, Stamp, Tag, Time,
};

use headway_fixed::{Judgement, Limits};

use crate::{
    AgentSpec, Answer, Beneath, Decider, Folds, Guarding, Interval, Record, Reporter, SpecError,
};

/// Decides.
pub trait Policy: Debug + Send + 'static {
    /// The answer to an observation; `None` if it will come from outside ([`Learned::act`]). `interval` is what was seen
    /// since the last decision, for a policy that learns.
    fn decide(&mut self, observation: &[f32], interval: &Interval) -> Option<Answer>;

    /// Its newest answer was not carried out: the guard refused it, or the base controller was not in congestion
    /// avoidance by then. What follows is not that answer's doing.
    fn on_refused(&mut self) {}

    /// What it has learned so far, if it goes on learning: numbers that another of its kind can go on from.
    fn learned(&self) -> Option<&[f32]> {
        None
    }

    /// What its host reads of an interval beyond the observation, such as an environment's measurements.
    fn folds(&self) -> Folds {
        Folds::default()
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

    fn learned(&self) -> Option<&[f32]> {
        (**self).learned()
    }

    fn folds(&self) -> Folds {
        (**self).folds()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        (**self).probe(probe);
    }
}

/// Decides nothing itself: the answer comes from outside, as in training.
#[derive(Clone, Copy, Debug, Default)]
pub struct External;

impl Policy for External {
    fn decide(&mut self, _: &[f32], _: &Interval) -> Option<Answer> {
        None
    }

    /// Rewards may be of any feature.
    fn folds(&self) -> Folds {
        Folds {
            averages: true,
            spread: true,
        }
    }
}

/// A learned controller.
#[derive(Debug)]
pub struct Learned<P> {
    spec: Arc<AgentSpec>,
    setup: Setup,
    beneath: Beneath,
    decider: Decider<P>,
    reporter: Reporter,
    rtt: RttStats,
    /// How long an answer takes to take effect.
    latency: Duration,
    /// Answers on their way: when each comes, to what it was asked when, and what it is.
    on_their_way: VecDeque<(Time, Time, f32)>,
    /// Of the question that is open.
    asked: Time,
    awaits_answer: bool,
    guard: Option<Guarding>,
}

impl<P: Policy> Learned<P> {
    /// For one flow. Inference and messages take time: an answer comes `latency` after the observation, and takes effect
    /// with the first acknowledgement from then on, as in a kernel (Owl, Fig. 2). Without latency it does so at once.
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
            beneath: Beneath::new(&spec.beneath, &spec.action, setup)?,
            reporter: Reporter::new(setup.mss),
            decider: Decider::new(&spec, setup.start, policy)?,
            rtt: RttStats::default(),
            on_their_way: VecDeque::new(),
            asked: setup.start,
            awaits_answer: false,
            guard: None,
            setup: *setup,
            spec,
            latency,
        })
    }

    /// With the kernel's guard between the policy and the base controller (`docs/guard.md`).
    #[must_use]
    pub fn guarded(self, limits: Limits) -> Learned<P> {
        Learned {
            guard: Some(Guarding::new(&self.setup, limits)),
            ..self
        }
    }

    /// What the policy was last shown.
    pub fn observation(&self) -> &[f32] {
        self.decider.observation()
    }

    /// The interval that ended with the last decision.
    pub fn interval(&self) -> &Interval {
        self.decider.interval()
    }

    /// Has it asked, and had no answer yet?
    pub fn awaits_answer(&self) -> bool {
        self.awaits_answer
    }

    /// The answer comes. The host has to read [`control`](CongestionControl::control) again, and the next timer. What it
    /// says of the interval holds at once, whatever the latency of the rest.
    pub fn act(&mut self, now: Time, answer: Answer) {
        self.awaits_answer = false;
        self.decider.choose_interval(answer);
        let answer = answer.action;
        match self.latency.is_zero() {
            true => self.carry_out(now, (self.asked, now), answer, Duration::ZERO),
            false => (self.on_their_way).push_back((now + self.latency, self.asked, answer)),
        }
    }

    /// The run ends: so does the interval under way, and the last observation shows it. Nothing is decided any more.
    pub fn conclude(&mut self, now: Time) {
        self.decider.conclude(now);
    }

    fn carry_out(
        &mut self,
        now: Time,
        (asked, answered): (Time, Time),
        answer: f32,
        age: Duration,
    ) {
        let guard = self.guard.as_mut();
        let is_allowed = guard.is_none_or(|guard| guard.answer(asked, answered, now));
        // The base controller may have left congestion avoidance meanwhile.
        if is_allowed && self.beneath.may_act() {
            let action = self.spec.action.action(answer);
            let guard = self.guard.as_mut();
            (self.beneath).act(now, self.setup.mss, &self.rtt, action, guard);
            self.decider.on_action(age);
        } else if asked == self.asked {
            self.decider.policy_mut().on_refused();
        }
    }

    /// Those answers that have come meanwhile.
    fn carry_out_due(&mut self, now: Time) {
        while let Some(&(at, asked, answer)) = self.on_their_way.front()
            && at <= now
        {
            self.on_their_way.pop_front();
            self.carry_out(now, (asked, at), answer, now.since(at) + self.latency);
        }
    }

    /// As report() in flow.h: the record says whose the flow is once it was judged.
    fn take(&mut self, record: &Record) {
        self.judge(record);
        let is_fine = |guard: &Guarding| guard.guard().is_fine();
        let mut record = *record;
        if !self.guard.as_ref().is_none_or(is_fine) {
            record.flags |= Record::TRIPPED;
        }
        self.decider.on_record(&record);
        self.decide_if_due(record.now());
    }

    /// The guard may take the flow from the policy, or give it back.
    fn judge(&mut self, record: &Record) {
        let Some(guard) = &mut self.guard else { return };
        match guard.judge(record) {
            Judgement::Policys | Judgement::Cubics => {}
            Judgement::Trips => {
                let start = guard.restart(record, &self.beneath.controller().control());
                match &mut self.beneath {
                    Beneath::Base(scheme) => scheme.go_alone(start.0, start.1),
                    Beneath::Rate(_) | Beneath::Tunable(_) => guard.stand_in(start),
                }
            }
            Judgement::Returns => {
                let left = guard.stand_down();
                (self.beneath).return_to_policy(&self.spec.beneath, left, &self.rtt);
            }
        }
    }

    /// Who has the flow: the base controller, or the guard's Cubic.
    fn controller(&self) -> &dyn CongestionControl {
        let substitute = self.guard.as_ref().and_then(Guarding::substitute);
        substitute.unwrap_or(self.beneath.controller())
    }

    /// What it takes the path for; the guard's Cubic has no model.
    fn model(&self) -> Option<PathModel> {
        let substitute = self.guard.as_ref().and_then(Guarding::substitute);
        match substitute {
            Some(_) => None,
            None => self.beneath.model(),
        }
    }

    /// Tells the base controller, and the guard's Cubic if there is one.
    fn tell(&mut self, mut news: impl FnMut(&mut dyn CongestionControl)) {
        news(self.beneath.controller_mut());
        if let Some(cubic) = self.guard.as_mut().and_then(Guarding::substitute_mut) {
            news(cubic);
        }
    }

    fn decide_if_due(&mut self, now: Time) {
        if !self.decider.is_due(now) || self.awaits_answer || !self.beneath.may_act() {
            return;
        }
        self.asked = now;
        if let Some(guard) = &mut self.guard {
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
        self.reporter.on_sent(sent);
        let mut tag = Tag::NONE;
        self.tell(|controller| tag = controller.on_sent(sent));
        tag
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        match &self.guard {
            Some(guard) => {
                let heard = guard.heard(feedback);
                self.tell(|controller| controller.on_feedback(&heard));
            }
            None => self.beneath.controller_mut().on_feedback(feedback),
        }
        self.rtt = feedback.rtt_stats;
        self.carry_out_due(feedback.now);
        let control = self.controller().control();
        let record = self.reporter.on_feedback(feedback, &control);
        self.take(&record.with_model(self.model()));
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.tell(|controller| controller.on_rto(rto));
        let control = self.controller().control();
        let record = self.reporter.on_rto(rto, &control);
        self.take(&record.with_model(self.model()));
    }

    fn on_idle(&mut self, now: Time, idle: Duration) {
        self.tell(|controller| controller.on_idle(now, idle));
    }

    fn on_network(&mut self, now: Time, view: &NetworkView) {
        self.decider.on_network(now, view);
        self.tell(|controller| controller.on_network(now, view));
    }

    fn next_timer(&self) -> Time {
        let clock = match self.awaits_answer || !self.beneath.may_act() {
            true => Time::NEVER,
            false => self.decider.next_timer(),
        };
        clock.min(self.beneath.controller().next_timer())
    }

    fn on_timer(&mut self, now: Time) {
        if self.beneath.controller().next_timer() <= now {
            self.beneath.controller_mut().on_timer(now);
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
        if let Some(guard) = &self.guard {
            guard.probe(probe);
        }
    }

    fn steered(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}
