//! Serves flows: what they say comes in, what their policies decide goes out.

mod flow;
mod policies;
mod serve;
mod shadow;
mod statistics;
mod store;
mod timers;
mod tuning;

use std::collections::HashMap;

use headway_cc::Time;
use headway_kernel::abi::{Message, NO_SLOT, Open, Report, Verdict};

pub use policies::{Frame, Policies};
pub use serve::serve;
pub use shadow::Shadow;
pub use store::Store;

use crate::error::{Error, Result};
use crate::programs::Program;
use crate::system::clock;
use flow::Flow;
use statistics::Statistics;
use timers::Timers;

/// A flow: which program it is of, and its number there.
type Key = (usize, u32);

/// Everything that the agent keeps.
pub struct Agent {
    programs: Vec<Program>,
    policies: Vec<Option<Policies>>,
    flows: HashMap<Key, Flow>,
    timers: Timers,
    statistics: Statistics,
    shadow: Option<Shadow>,
    store: Store,
    frame: Frame,
    begun: Time,
}

impl Agent {
    /// For these programs, each with its policies; without any its flows are a tuner's.
    pub fn new(
        programs: Vec<(Program, Option<Policies>)>,
        shadow: Option<Shadow>,
        store: Store,
        frame: Frame,
    ) -> Agent {
        let (programs, policies) = programs.into_iter().unzip();
        Agent {
            programs,
            policies,
            flows: HashMap::new(),
            timers: Timers::default(),
            statistics: Statistics::default(),
            shadow,
            store,
            frame,
            begun: clock::now(),
        }
    }

    /// A message of the program of that index.
    pub fn on_message(&mut self, program: usize, bytes: &[u8]) {
        match Message::read(bytes) {
            Ok(Message::Report(report)) => self.on_report(program, &report),
            Ok(Message::Open(open)) => self.on_open(program, &open),
            Ok(Message::Close(report)) => self.on_close(program, &report),
            Ok(Message::Verdict(verdict)) => self.on_verdict(program, &verdict),
            Err(error) => {
                self.statistics.malformed += 1;
                tracing::error!(%error, "a message that is none");
            }
        }
    }

    fn on_open(&mut self, program: usize, open: &Open) {
        if open.slot == NO_SLOT {
            return;
        }
        let key = (program, open.header.flow);
        let served = self.policies[program].as_ref();
        let served = served.map(|policies| policies.of(flow::remote(open)));
        let learned = served
            .as_ref()
            .and_then(|served| self.store.learned(served));
        match Flow::new(open, served, learned) {
            Ok(flow) => {
                tracing::info!(flow = key.1, remote = %flow.remote(), policy = flow.policy(), "opens");
                // Its slot may be of one whose end found no room in the ring.
                self.flows
                    .retain(|k, f| k.0 != program || f.slot() != open.slot);
                self.flows.insert(key, flow);
            }
            Err(error) => tracing::error!(flow = key.1, %error, "cannot be served"),
        }
    }

    fn on_report(&mut self, program: usize, report: &Report) {
        self.statistics.reports += 1;
        let key = (program, report.header.flow);
        let Some(flow) = self.flows.get_mut(&key) else {
            self.statistics.unknown += 1;
            return;
        };
        let (now, program) = (report.record.now(), &self.programs[program]);
        // A timer that ran out before this record decides by those before, however late the agent wakes (decision 35).
        if let Some(due) = flow.next_timer().filter(|due| *due <= now)
            && flow.is_due(due)
        {
            flow.answer(program, due, &mut self.statistics, self.shadow.as_mut());
        }
        if flow.on_record(&report.record) {
            flow.answer(program, now, &mut self.statistics, self.shadow.as_mut());
        }
        if let Some(due) = flow.next_timer() {
            self.timers.set(key, due);
        }
    }

    fn on_close(&mut self, program: usize, report: &Report) {
        let Some(flow) = self.flows.remove(&(program, report.header.flow)) else {
            return;
        };
        tracing::info!(
            flow = report.header.flow,
            delivered = report.record.delivered,
            lost = report.record.lost,
            "closes"
        );
        if let Some((served, learned)) = flow.learned() {
            self.store.keep(served, learned);
        }
    }

    fn on_verdict(&mut self, program: usize, verdict: &Verdict) {
        let number = verdict.header.flow;
        let reason = statistics::reason(verdict.reason);
        if verdict.reason == 0 {
            tracing::info!(
                flow = number,
                trips = verdict.trips,
                "goes back to its policy"
            );
        } else {
            tracing::warn!(
                flow = number,
                reason,
                trips = verdict.trips,
                "is Cubic's: the guard tripped"
            );
        }
        if let Some(flow) = self.flows.get_mut(&(program, number)) {
            flow.on_verdict(verdict);
        }
    }

    /// Says to the programs whether their messages are being read.
    pub fn set_awake(&self, is_awake: bool) {
        self.programs.iter().for_each(|p| p.set_awake(is_awake));
    }

    /// Decides where a clock, not an acknowledgement, says when. Returns when to come again.
    pub fn on_timers(&mut self, now: Time) -> Time {
        while let Some(key) = self.timers.due(now) {
            let Some(flow) = self.flows.get_mut(&key) else {
                continue;
            };
            if flow.is_due(now) {
                let program = &self.programs[key.0];
                flow.answer(program, now, &mut self.statistics, self.shadow.as_mut());
            }
            if let Some(due) = flow.next_timer().filter(|due| *due > now) {
                self.timers.set(key, due);
            }
        }
        self.timers.next()
    }

    /// Puts other policies in the place of those that there are, also for the flows that there are. Nothing changes if
    /// one of them cannot be.
    ///
    /// # Errors
    /// One line.
    pub fn reload(&mut self, policies: Vec<Option<Policies>>) -> Result<()> {
        for (program, policies) in self.programs.iter().zip(&policies) {
            policies
                .iter()
                .try_for_each(|p| p.check(program.controller))?;
        }
        for ((program, _), flow) in &mut self.flows {
            let Some(policies) = &policies[*program] else {
                continue;
            };
            let served = policies.of(flow.remote().ip());
            let learned = self.store.learned(&served);
            flow.take_policy(served, learned)?;
        }
        for (program, policies) in self.programs.iter().zip(&policies) {
            if let Some(policies) = policies {
                policies.configure(program, self.frame);
            }
        }
        self.policies = policies;
        Ok(())
    }

    /// Which policies there are now, read anew: a model's folder may hold another model.
    pub fn read_policies_anew(&self) -> Result<Vec<Option<Policies>>> {
        let read =
            |policies: &Option<Policies>| policies.as_ref().map(Policies::read_anew).transpose();
        self.policies.iter().map(read).collect()
    }

    /// Sets parameters of a flow's controller, or of all that are a tuner's. Returns of how many.
    ///
    /// # Errors
    /// One line, if there is no such flow, or what is to be set is wrong.
    pub fn set(&mut self, number: Option<u32>, settings: &str) -> Result<usize> {
        let settings = tuning::read(settings)?;
        let mut found = 0;
        for ((program, own), flow) in &mut self.flows {
            if number.is_none_or(|wanted| wanted == *own) {
                let program = &self.programs[*program];
                found += usize::from(flow.set(&settings, program, &mut self.statistics));
            }
        }
        match (number, found) {
            (Some(number), 0) => Err(Error::Usage(format!(
                "no flow {number} whose parameters may be set; headwayd status lists them, of headway_bbr without a policy"
            ))),
            _ => Ok(found),
        }
    }

    /// Saves what flows have learned. To be called at the end.
    pub fn save(&mut self) {
        for (served, learned) in self.flows.values().filter_map(Flow::learned) {
            self.store.keep(served, learned);
        }
        self.store.save();
        if let Some(shadow) = &mut self.shadow {
            shadow.flush();
        }
    }

    /// What happens, for `headwayd status`.
    pub fn status(&self) -> serde_json::Value {
        let controllers: Vec<_> = (self.programs.iter().zip(&self.policies))
            .map(|(program, policies)| match policies {
                Some(policies) => policies.describe(&program.name),
                None => serde_json::json!({ "name": program.name }),
            })
            .collect();
        let now = clock::now();
        let mut flows: Vec<_> = self.flows.iter().collect();
        flows.sort_unstable_by_key(|(key, _)| **key);
        let flows: Vec<_> = (flows.into_iter())
            .map(|((program, number), flow)| {
                flow.describe(*number, &self.programs[*program].name, now)
            })
            .collect();
        serde_json::json!({
            "schema": 1,
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_s": now.since(self.begun).as_secs_f64(),
            "shadow": self.shadow.is_some(),
            "controllers": controllers,
            "counters": self.statistics.counters(&self.programs, self.flows.len()),
            "latency_us": self.statistics.latency(),
            "flows": flows,
        })
    }
}
