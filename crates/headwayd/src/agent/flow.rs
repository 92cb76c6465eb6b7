//! A flow that is served.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use headway_cc::{Bytes, Duration, Probe, Setup, Time};
use headway_kernel::abi::{ActionSlot, Open, Verdict};
use headway_policy::schemes::Served;
use headway_policy::{Action, Decider, Policy, Record};

use super::Shadow;
use super::statistics::{self, Statistics};
use crate::error::{Error, Result};
use crate::programs::Program;
use crate::system::clock;

/// From then on an action is not carried out any more.
const EXPIRES_AFTER: Duration = Duration::from_secs(1);

/// A flow that is served.
#[derive(Debug)]
pub struct Flow {
    served: Arc<Served>,
    decider: Decider<Box<dyn Policy>>,
    setup: Setup,
    number: u32,
    slot: u32,
    remote: SocketAddr,
    last: Record,
    /// When the newest answer was given.
    answered: Time,
    decisions: u64,
    guard: Guarded,
}

impl Flow {
    /// That opens.
    ///
    /// # Errors
    /// One line, if its policy cannot be had.
    pub fn new(open: &Open, served: Arc<Served>, learned: Option<&[f32]>) -> Result<Flow> {
        let mss = Bytes::new(open.mss.into());
        let setup = Setup {
            initial_cwnd: mss * u64::from(open.initial_cwnd),
            start: Time::from_nanos(open.start_ns),
            ..Setup::new(mss, u64::from(open.header.flow))
        };
        Ok(Flow {
            decider: decider(&served, &setup, learned)?,
            served,
            setup,
            number: open.header.flow,
            slot: open.slot,
            remote: SocketAddr::new(remote(open), open.remote_port),
            last: Record::default(),
            answered: Time::ZERO,
            decisions: 0,
            guard: Guarded::default(),
        })
    }

    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    pub fn slot(&self) -> u32 {
        self.slot
    }

    pub fn served(&self) -> &Arc<Served> {
        &self.served
    }

    pub fn policy(&self) -> &str {
        self.served.spec()
    }

    pub fn learned(&self) -> Option<&[f32]> {
        self.decider.policy().learned()
    }

    /// Takes its state. Is an answer waited for?
    pub fn on_record(&mut self, record: &Record) -> bool {
        self.last = *record;
        self.decider.on_record(record);
        // An answer that a clock gave meanwhile is one to this.
        record.has(Record::ASKS) && self.answered <= record.now()
    }

    /// Is it time to decide, though no acknowledgement came?
    pub fn is_due(&self, now: Time) -> bool {
        self.last.has(Record::STEERABLE) && self.decider.is_due(now)
    }

    /// When its clock wants to see whether it is.
    pub fn next_timer(&self) -> Option<Time> {
        let due = self.decider.next_timer();
        (due != Time::NEVER).then_some(due)
    }

    pub fn on_verdict(&mut self, verdict: &Verdict) {
        self.guard = Guarded {
            reason: verdict.reason,
            trips: verdict.trips,
            at_ns: verdict.now_ns,
        };
    }

    /// Decides if it is time, and answers in any case.
    pub fn answer(
        &mut self,
        program: &Program,
        now: Time,
        statistics: &mut Statistics,
        shadow: Option<&mut Shadow>,
    ) {
        let agent = self.served.agent();
        let mut action = Action::Nothing;
        let is_decision = self.decider.is_due(now);
        if is_decision {
            let answer = self.decider.decide(now);
            action = answer.map_or(Action::Nothing, |a| agent.action.action(a));
            tracing::trace!(flow = self.number, ?answer, seen = ?self.decider.interval(), "decides");
            self.decisions += 1;
            statistics.decisions += 1;
        }
        let is_shadow = shadow.is_some();
        if let Some(shadow) = shadow
            && is_decision
        {
            shadow.write(self.number, self.remote, &self.last, action);
        }
        let told = if is_shadow { Action::Nothing } else { action };
        let slot = ActionSlot {
            decided_ns: now.as_nanos(),
            expires_ns: (now + EXPIRES_AFTER).as_nanos(),
            due_ns: self.decider.due().as_nanos(),
            flow: self.number,
            ..ActionSlot::of(told, program.controller.tunables())
        };
        program.slots.write(self.slot, &slot);
        self.answered = clock::now();
        let age = self.answered.since(now);
        if is_decision {
            self.decider.on_action(age);
            statistics.latency.add(age);
        }
    }

    /// Another policy decides from now on. What was seen of the flow stays, if the other sees the same.
    ///
    /// # Errors
    /// One line, if it cannot be had.
    pub fn take_policy(&mut self, served: Arc<Served>, learned: Option<&[f32]>) -> Result<()> {
        let sees_the_same = served.agent() == self.served.agent();
        if sees_the_same {
            *self.decider.policy_mut() = policy(&served, &self.setup, learned)?;
        } else {
            self.decider = decider(&served, &self.setup, learned)?;
        }
        self.served = served;
        Ok(())
    }

    /// For `headwayd status`.
    pub fn describe(&self, number: u32, controller: &str, now: Time) -> serde_json::Value {
        let Record {
            cwnd,
            srtt_us,
            min_rtt_us,
            rate_delivered,
            rate_interval_us,
            mss,
            pacing_rate,
            in_flight,
            delivered,
            lost,
            ..
        } = self.last;
        let rate =
            f64::from(rate_delivered) * f64::from(mss) * 8.0 / f64::from(rate_interval_us.max(1));
        let mut refused = Refused::default();
        self.decider.policy().probe(&mut refused);
        serde_json::json!({
            "flow": number,
            "controller": controller,
            "policy": self.policy(),
            "remote": self.remote.to_string(),
            "age_s": now.since(self.setup.start).as_secs_f64(),
            "cwnd_packets": cwnd,
            "in_flight_packets": in_flight,
            "srtt_ms": f64::from(srtt_us) * 1e-3,
            "min_rtt_ms": f64::from(min_rtt_us) * 1e-3,
            "delivery_rate_mbps": rate,
            "pacing_rate_mbps": if pacing_rate > 0 { Some(pacing_rate as f64 * 8e-6) } else { None },
            "delivered_packets": delivered,
            "lost_packets": lost,
            "decisions": self.decisions,
            "refused_decisions": refused.0,
            "guard": if self.guard.reason == 0 { "policy" } else { "cubic" },
            "guard_reason": statistics::reason(self.guard.reason),
            "guard_trips": self.guard.trips,
            "guard_judged_at_s": self.guard.at_ns as f64 * 1e-9,
        })
    }
}

/// What the guard said last.
#[derive(Clone, Copy, Debug, Default)]
struct Guarded {
    reason: u32,
    trips: u32,
    at_ns: u64,
}

/// How many decisions a policy could not give.
#[derive(Default)]
struct Refused(f64);

impl Probe for Refused {
    fn value(&mut self, name: &'static str, value: f64) {
        if name == "refused_decisions" {
            self.0 = value;
        }
    }
}

fn policy(served: &Served, setup: &Setup, learned: Option<&[f32]>) -> Result<Box<dyn Policy>> {
    served
        .policy(setup, learned)
        .map_err(|e| Error::Failed(e.to_string()))
}

fn decider(
    served: &Served,
    setup: &Setup,
    learned: Option<&[f32]>,
) -> Result<Decider<Box<dyn Policy>>> {
    let policy = policy(served, setup, learned)?;
    Decider::new(served.agent(), setup.start, policy).map_err(|e| Error::Failed(e.to_string()))
}

/// Where a flow goes.
pub fn remote(open: &Open) -> IpAddr {
    Ipv6Addr::from(open.remote_address).to_canonical()
}
