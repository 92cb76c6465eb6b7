//! A flow that is served.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use headway_cc::{Bytes, Duration, Probe, Setup, Time};
use headway_kernel::abi::{ActionSlot, Open, Verdict};
use headway_policy::schemes::Served;
use headway_policy::{Action, ClockSpec, Decider, Policy, Record};

use super::Shadow;
use super::statistics::{self, Statistics};
use crate::error::{Error, Result};
use crate::programs::Program;
use crate::system::clock;

/// From then on an action is not carried out any more.
const EXPIRES_AFTER: Duration = Duration::from_secs(1);
/// How often a flow asks whether its parameters are still the same.
const TUNERS_PATIENCE: Duration = Duration::from_millis(500);
/// Records that are further apart say nothing of when the next comes.
const PAUSE: Duration = Duration::from_millis(10);

/// Who says what a flow is to do.
#[derive(Debug)]
enum Decides {
    /// A policy.
    Policy(Arc<Served>, Box<Decider<Box<dyn Policy>>>),
    /// Somebody who sets parameters from time to time: their names, and their values.
    Tuner(Vec<String>, Vec<f64>),
}

/// A flow that is served.
#[derive(Debug)]
pub struct Flow {
    decides: Decides,
    setup: Setup,
    number: u32,
    slot: u16,
    remote: SocketAddr,
    last: Record,
    /// How far apart its records are, on average.
    apart: Duration,
    /// From when on it is to ask, by the newest answer.
    due: Time,
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
    pub fn new(open: &Open, served: Option<Arc<Served>>, learned: Option<&[f32]>) -> Result<Flow> {
        let mss = Bytes::new(open.mss.into());
        let setup = Setup {
            initial_cwnd: mss * u64::from(open.initial_cwnd),
            start: Time::from_nanos(open.start_ns),
            ..Setup::new(mss, u64::from(open.header.flow))
        };
        Ok(Flow {
            decides: match served {
                Some(served) => policy(served, &setup, learned)?,
                None => Decides::Tuner(Vec::new(), Vec::new()),
            },
            setup,
            number: open.header.flow,
            slot: open.header.slot,
            remote: SocketAddr::new(remote(open), open.remote_port),
            last: Record::default(),
            apart: Duration::ZERO,
            due: Time::ZERO,
            answered: Time::ZERO,
            decisions: 0,
            guard: Guarded::default(),
        })
    }

    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    pub fn number(&self) -> u32 {
        self.number
    }

    /// From when on it is to ask, by the newest answer.
    pub fn due(&self) -> Time {
        self.due
    }

    /// When that was given.
    pub fn answered(&self) -> Time {
        self.answered
    }

    /// When its first acknowledgement from a time on is to be expected, by the newest.
    pub fn acknowledged(&self, from: Time) -> Time {
        let (last, apart) = (self.last.now(), self.apart.as_nanos().max(1));
        last + self.apart * from.since(last).as_nanos().div_ceil(apart)
    }

    /// Does its policy's clock decide then, whether it asks or not?
    pub fn has_clock(&self) -> bool {
        match &self.decides {
            Decides::Policy(served, _) => match served.agent().clock {
                ClockSpec::Period { .. } | ClockSpec::Rtt { .. } => true,
                ClockSpec::EveryAck | ClockSpec::Jiffies { .. } => false,
            },
            Decides::Tuner(..) => false,
        }
    }

    pub fn policy(&self) -> Option<&str> {
        match &self.decides {
            Decides::Policy(served, _) => Some(served.spec()),
            Decides::Tuner(..) => None,
        }
    }

    /// What its policy has learned.
    pub fn learned(&self) -> Option<(&Arc<Served>, &[f32])> {
        match &self.decides {
            Decides::Policy(served, decider) => Some((served, decider.policy().learned()?)),
            Decides::Tuner(..) => None,
        }
    }

    /// Takes its state. Is an answer waited for?
    pub fn on_record(&mut self, record: &Record) -> bool {
        let since = record.now().since(self.last.now()).min(PAUSE);
        self.apart = (self.apart * 7 + since) / 8;
        self.last = *record;
        if let Decides::Policy(_, decider) = &mut self.decides {
            decider.on_record(record);
        }
        // An answer that a clock gave meanwhile is one to this.
        record.has(Record::ASKS) && self.answered <= record.now()
    }

    /// Is it time to decide, though no acknowledgement came?
    pub fn is_due(&self, now: Time) -> bool {
        match &self.decides {
            Decides::Policy(_, decider) => self.last.has(Record::STEERABLE) && decider.is_due(now),
            Decides::Tuner(..) => false,
        }
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
        let tunables = program.controller.tunables();
        let (slot, due, is_decision) = match &mut self.decides {
            Decides::Policy(served, decider) => {
                let mut action = Action::Nothing;
                let is_decision = decider.is_due(now);
                if is_decision {
                    let answer = decider.decide(now);
                    action = answer.map_or(action, |a| served.agent().action.action(a));
                    tracing::trace!(flow = self.number, ?answer, seen = ?decider.interval(), "decides");
                }
                let told = if shadow.is_some() {
                    Action::Nothing
                } else {
                    action
                };
                if let Some(shadow) = shadow
                    && is_decision
                {
                    shadow.write(self.number, self.remote, &self.last, action);
                }
                (ActionSlot::of(told, tunables), decider.due(), is_decision)
            }
            // Said again with each answer: none is ever lost.
            Decides::Tuner(names, values) => {
                let action = Action::Settings(names, values);
                (
                    ActionSlot::of(action, tunables),
                    now + TUNERS_PATIENCE,
                    false,
                )
            }
        };
        let slot = ActionSlot {
            decided_ns: now.as_nanos(),
            expires_ns: (now + EXPIRES_AFTER).as_nanos(),
            due_ns: due.as_nanos(),
            flow: self.number,
            ..slot
        };
        program.slots.write(self.slot, &slot);
        self.due = due;
        self.answered = clock::now();
        if is_decision {
            let age = self.answered.since(now);
            self.decisions += 1;
            statistics.decisions += 1;
            statistics.latency.add(age);
            if let Decides::Policy(_, decider) = &mut self.decides {
                decider.on_action(age);
            }
        }
    }

    /// Sets parameters of the controller beneath, which stay set. Whether the flow is one that a tuner sets.
    pub fn set(
        &mut self,
        settings: &[(&str, f64)],
        program: &Program,
        statistics: &mut Statistics,
    ) -> bool {
        let Decides::Tuner(names, values) = &mut self.decides else {
            return false;
        };
        for (name, value) in settings {
            match names.iter().position(|n| n == name) {
                Some(at) => values[at] = *value,
                None => {
                    names.push((*name).to_owned());
                    values.push(*value);
                }
            }
        }
        self.answer(program, clock::now(), statistics, None);
        true
    }

    /// Another policy decides from now on. What was seen of the flow stays, if the other sees the same.
    ///
    /// # Errors
    /// One line, if it cannot be had.
    pub fn take_policy(&mut self, served: Arc<Served>, learned: Option<&[f32]>) -> Result<()> {
        if let Decides::Policy(before, decider) = &mut self.decides
            && before.agent() == served.agent()
        {
            let policy = served.policy(&self.setup, learned);
            *decider.policy_mut() = policy.map_err(|e| Error::Failed(e.to_string()))?;
            *before = served;
        } else {
            self.decides = policy(served, &self.setup, learned)?;
        }
        Ok(())
    }

    /// For `headwayd status`.
    pub fn describe(&self, controller: &str, now: Time) -> serde_json::Value {
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
        let mut settings = serde_json::Map::new();
        match &self.decides {
            Decides::Policy(_, decider) => decider.policy().probe(&mut refused),
            Decides::Tuner(names, values) => {
                settings.extend(
                    names
                        .iter()
                        .cloned()
                        .zip(values.iter().map(|v| (*v).into())),
                );
            }
        }
        serde_json::json!({
            "flow": self.number,
            "controller": controller,
            "policy": self.policy(),
            "settings": settings,
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

fn policy(served: Arc<Served>, setup: &Setup, learned: Option<&[f32]>) -> Result<Decides> {
    let failed = |e: &dyn std::fmt::Display| Error::Failed(e.to_string());
    let policy = served.policy(setup, learned).map_err(|e| failed(&e))?;
    let decider = Decider::new(served.agent(), setup.start, policy).map_err(|e| failed(&e))?;
    Ok(Decides::Policy(served, Box::new(decider)))
}

/// Where a flow goes.
pub fn remote(open: &Open) -> IpAddr {
    Ipv6Addr::from(open.remote_address).to_canonical()
}
