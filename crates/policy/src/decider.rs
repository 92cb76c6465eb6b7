//! Connects a policy with what it sees of one flow and with its clock, in any world.

use headway_cc::{Duration, NetworkView, Time};

use crate::{AgentSpec, Answer, Clock, Interval, Monitor, Observation, Policy, Record, SpecError};

/// A policy that decides for one flow, which [`Record`]s describe. Simulated time, real packets and
/// the kernel's agent all use it.
#[derive(Debug)]
pub struct Decider<P> {
    policy: P,
    monitor: Monitor,
    clock: Clock,
    observation: Observation,
    interval: Interval,
}

impl<P: Policy> Decider<P> {
    /// The decider of a flow that begins at `start`.
    ///
    /// # Errors
    /// [`SpecError`] if the observation cannot be computed.
    pub fn new(spec: &AgentSpec, start: Time, policy: P) -> Result<Decider<P>, SpecError> {
        Ok(Decider {
            monitor: Monitor::new(
                start,
                spec.observation.needed_stats().and(policy.needed_stats()),
            ),
            clock: Clock::new(&spec.clock, start),
            observation: Observation::new(&spec.observation)?,
            interval: Interval::default(),
            policy,
        })
    }

    /// Takes the flow's state at an acknowledgement or a timeout.
    #[inline]
    pub fn on_record(&mut self, record: &Record) {
        self.monitor.on_record(record);
        self.clock.on_record(record);
    }

    /// Takes a report of the network's switches.
    pub fn on_network(&mut self, now: Time, view: &NetworkView) {
        self.monitor.on_network(now, view);
    }

    /// An answer took effect `age` after it was given.
    pub fn on_action(&mut self, age: Duration) {
        self.monitor.on_action(age);
    }

    /// Is it time to decide?
    pub fn is_due(&self, now: Time) -> bool {
        self.clock.is_due(now, self.monitor.has_news())
    }

    /// When the host's timer should check whether a decision [is due](Self::is_due); never if only
    /// an acknowledgement can cause one.
    pub fn next_timer(&self) -> Time {
        self.clock.next_timer(self.monitor.has_news())
    }

    /// The earliest time at which a record can make a decision due.
    pub fn due(&self) -> Time {
        self.clock.due()
    }

    /// Ends the interval and decides. Returns `None` if the answer will come from outside.
    pub fn decide(&mut self, now: Time) -> Option<Answer> {
        self.conclude(now);
        self.clock.restart(now);
        let answer = (self.policy).decide(self.observation.values(), &self.interval)?;
        self.choose_interval(answer);
        Some(answer)
    }

    /// Sets the length of the interval that began with the answered request.
    pub fn choose_interval(&mut self, answer: Answer) {
        self.clock.choose(answer.interval);
    }

    /// Ends the interval and computes its observation, without a decision.
    pub fn conclude(&mut self, now: Time) {
        self.interval = self.monitor.close(now);
        self.observation.push(&self.interval);
    }

    /// What the policy was last shown.
    pub fn observation(&self) -> &[f32] {
        self.observation.values()
    }

    /// The interval that ended with the last observation.
    pub fn interval(&self) -> &Interval {
        &self.interval
    }

    /// The policy.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// The policy.
    pub fn policy_mut(&mut self) -> &mut P {
        &mut self.policy
    }
}
