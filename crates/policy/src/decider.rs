//! When a policy decides, and what it sees then: of a flow of any host.

use headway_cc::{Duration, NetworkView, Time};

use crate::{AgentSpec, Answer, Clock, Interval, Monitor, Observation, Policy, Record, SpecError};

/// A policy at work for one flow, of which it is told in [`Record`]s: in simulated time, over real
/// packets and in the agent of the kernel's flows alike.
#[derive(Debug)]
pub struct Decider<P> {
    policy: P,
    monitor: Monitor,
    clock: Clock,
    observation: Observation,
    interval: Interval,
}

impl<P: Policy> Decider<P> {
    /// For a flow that begins at `start`.
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

    /// The host tells of the flow.
    #[inline]
    pub fn on_record(&mut self, record: &Record) {
        self.monitor.on_record(record);
        self.clock.on_record(record);
    }

    /// News from inside the network.
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

    /// When the host's timer is to see whether it [is](Self::is_due); never where only an
    /// acknowledgement can tell.
    pub fn next_timer(&self) -> Time {
        self.clock.next_timer(self.monitor.has_news())
    }

    /// From when on a record may make it due.
    pub fn due(&self) -> Time {
        self.clock.due()
    }

    /// Ends the interval and decides. `None` if the answer will come from outside.
    pub fn decide(&mut self, now: Time) -> Option<Answer> {
        self.conclude(now);
        self.clock.restart(now);
        let answer = (self.policy).decide(self.observation.values(), &self.interval)?;
        self.choose_interval(answer);
        Some(answer)
    }

    /// An answer says how long the interval that began with its question is to last.
    pub fn choose_interval(&mut self, answer: Answer) {
        self.clock.choose(answer.interval);
    }

    /// Ends the interval, and shows it; nothing is decided.
    pub fn conclude(&mut self, now: Time) {
        self.interval = self.monitor.close(now);
        self.observation.push(&self.interval);
    }

    /// What the policy was last shown.
    pub fn observation(&self) -> &[f32] {
        self.observation.values()
    }

    /// The interval that ended with that.
    pub fn interval(&self) -> &Interval {
        &self.interval
    }

    /// Who decides.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// Who decides.
    pub fn policy_mut(&mut self) -> &mut P {
        &mut self.policy
    }
}
