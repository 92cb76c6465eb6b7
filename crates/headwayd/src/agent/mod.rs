//! Serves flows: what they say comes in, what their policies decide goes out.

mod class;
mod flow;
mod flows;
pub(crate) mod gradients;
mod kernel;
mod learners;
mod paths;
mod policies;
mod quality;
mod range;
mod serve;
mod shadow;
mod shares;
mod statistics;
mod store;
mod timers;
mod tuning;
mod turn;
mod wait;

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use headway_cc::{Duration, Time};
use headway_kernel::abi::{Known, Message, Open, Report, VerdictMessage};
use headway_policy::dqn::Step;
use headway_policy::schemes::PolicySpec;

pub use class::Class;
pub use kernel::Kernel;
pub use policies::{AgentOptions, Policies};
pub(crate) use serve::serve;
pub use shadow::Shadow;
pub use store::Store;
pub use turn::turn;
pub use wait::Wait;

use crate::error::{Error, Result};
use crate::network::News;
use flow::Flow;
use flows::Flows;
use learners::{Learners, Learning};
use paths::Paths;
use shares::Shares;
use statistics::Statistics;
pub use timers::FlowSlot;
use timers::Timers;
use wait::WaitPolicy;

/// Everything that the agent keeps.
pub struct Agent<K> {
    programs: Vec<K>,
    policies: Vec<Option<Policies>>,
    /// Of each program.
    flows: Vec<Flows>,
    timers: Timers,
    shares: Shares,
    wait_policy: WaitPolicy,
    /// Do the programs know that their messages are being read?
    is_awake: bool,
    statistics: Statistics,
    shadow: Option<Shadow>,
    store: Store,
    options: AgentOptions,
    learners: Learners,
    /// Who takes gradient steps; without it the agent does, between answers.
    gradients: Option<SyncSender<Step>>,
    paths: Paths,
    /// What was set of all flows of a tuner: those that begin later have it too.
    tuned: Vec<(&'static str, f64)>,
    begun: Time,
    /// As the programs know it.
    served_until: Time,
    /// When what was learned is saved next.
    saves: Time,
}

/// Flows that are given another policy, and flows that are told of, between two looks at the ring:
/// either takes a millisecond or so, and an answer may take a hundred.
const RENEWED_AT_ONCE: usize = 8;
const TOLD_AT_ONCE: usize = 64;
/// A turn usually takes a few milliseconds, and a sleep 50 ms. An agent that has not renewed this
/// for this time is taken for gone: flows that begin are Cubic's until it has.
const SERVES_FOR: Duration = Duration::from_millis(500);
/// How much of what was learned a crash may cost.
const SAVE_EVERY: Duration = Duration::from_secs(30);

impl<K: Kernel> Agent<K> {
    /// For these programs, each with its policies; without any its flows are a tuner's. Flows that
    /// an earlier agent knew of begin with their next report.
    pub fn new(
        programs: Vec<(K, Option<Policies>)>,
        shadow: Option<Shadow>,
        store: Store,
        options: AgentOptions,
        learners: usize,
        now: Time,
    ) -> Agent<K> {
        let (programs, policies): (Vec<_>, Vec<_>) = programs.into_iter().unzip();
        let mut agent = Agent {
            flows: programs.iter().map(known_flows).collect(),
            programs,
            policies,
            timers: Timers::default(),
            shares: Shares::default(),
            wait_policy: WaitPolicy::new(now),
            is_awake: false,
            statistics: Statistics {
                begun: now,
                ..Statistics::default()
            },
            shadow,
            store,
            options,
            learners: Learners::at_most(learners, options.learners_of_user),
            gradients: None,
            paths: Paths::default(),
            tuned: Vec::new(),
            begun: now,
            served_until: Time::ZERO,
            saves: now + SAVE_EVERY,
        };
        agent.say_served(now);
        agent
    }

    /// With a thread that takes the gradient steps of flows that learn, so that no answer waits for
    /// one.
    #[must_use]
    pub fn learning_on(mut self, thread: SyncSender<Step>) -> Agent<K> {
        self.gradients = Some(thread);
        self
    }

    /// A message of the program of that index.
    pub fn on_message(&mut self, program: usize, bytes: &[u8]) {
        let message = match Message::read(bytes) {
            Ok(Message::Report(report)) => return self.on_asked(program, &report),
            Ok(message) => message,
            Err(error) => {
                self.statistics.malformed += 1;
                tracing::error!(%error, "a message from the kernel is malformed");
                return;
            }
        };
        self.programs[program].remember(&message);
        match message {
            Message::Open(open) => self.on_open(program, &open),
            Message::Close(report) => self.on_close(program, &report),
            Message::Verdict(verdict) => self.on_verdict(program, &verdict),
            Message::Report(_) => {}
        }
    }

    /// The network tells of its paths.
    pub(crate) fn on_network(&mut self, news: News) {
        self.paths.take(news);
        for flow in self.flows.iter_mut().flat_map(Flows::iter_mut) {
            flow.on_network(&self.paths);
        }
    }

    /// Who had its slot before has ended, even if that found no room in the ring.
    fn on_open(&mut self, program: usize, open: &Open) {
        if let Some(before) = self.flows[program].put(Known::of(*open)) {
            self.on_end(&before);
        }
    }

    /// A flow's first report. Many flows never send one: receivers, and sockets that choose another
    /// controller.
    fn begin(&mut self, program: usize, known: &Known) {
        let open = &known.open;
        let number = open.header.flow;
        let policies = self.policies[program].as_ref();
        let wanted = policies.map(|policies| policies.of(flow::remote(open)));
        let remote = flow::remote(open);
        let class = policies.map_or_else(|| Class::of(remote, None), |own| own.class(remote));
        let served = wanted.as_ref().and_then(|wanted| {
            let learning: Vec<_> = self.flows.iter().map(Flows::learning).collect();
            self.learners
                .admit(Arc::clone(wanted), open.user, &learning)
        });
        let is_refused = is_refused(wanted.as_ref(), served.as_ref());
        if let (Some(wanted), true) = (&wanted, is_refused) {
            self.learners.count_refused(wanted, served.as_deref());
        }
        let started_from = served
            .as_ref()
            .and_then(|served| self.store.version(served, class));
        let learned = served
            .as_ref()
            .and_then(|served| self.store.learned(served, class));
        let flow = match wanted.is_some() && served.is_none() {
            true => Ok(Flow::of_nobody(open)),
            false => Flow::new(open, served, learned),
        };
        let mut flow = flow.unwrap_or_else(|error| {
            tracing::error!(flow = number, %error, "the agent cannot serve the flow, so Cubic controls it");
            Flow::of_nobody(open)
        });
        if let Some(verdict) = known.judged() {
            flow.on_verdict(verdict);
        }
        flow.step_elsewhere(self.gradients.as_ref());
        flow.class = class;
        flow.started_from = started_from;
        flow.is_refused = is_refused;
        flow.requires_range = self.options.requires_range;
        flow.is_shadow = self.options.is_shadow;
        flow.tune(&self.tuned);
        flow.on_network(&self.paths);
        tracing::debug!(flow = number, remote = %flow.remote(), policy = flow.policy(), "the flow began");
        self.flows[program].begin(open.header.slot, flow);
    }

    /// A report comes: it is handled at once, or waits until it is its user's turn.
    fn on_asked(&mut self, program: usize, report: &Report) {
        self.statistics.reports += 1;
        let Some(user) = self.flows[program].user(&report.header) else {
            self.statistics.unknown += 1;
            return;
        };
        let place = (program as u16, report.header.slot);
        if self.shares.is_next(user) {
            self.work_for(user, place, Some(report));
        } else {
            self.shares.delay(user, place, Some(report));
        }
    }

    /// Serves a flow of a user, who is charged for the time that it takes: with a report, or as its
    /// clock has run out.
    fn work_for(&mut self, user: u32, place: FlowSlot, report: Option<&Report>) {
        let program = usize::from(place.0);
        let begun = self.programs[program].now();
        match report {
            Some(report) => self.on_report(program, report),
            None => {
                let flow = self.flows[program].get(place.1);
                if flow.is_some_and(|flow| flow.is_due(begun)) {
                    self.answer(place, begun, begun);
                }
            }
        }
        let time = self.programs[program].now().since(begun);
        self.shares.charge(user, time);
    }

    fn on_report(&mut self, program: usize, report: &Report) {
        if let Some(known) = self.flows[program].opened(&report.header) {
            self.begin(program, &known);
        }
        // One that has waited may be of a flow that has ended.
        let Some(flow) = self.flows[program].of(&report.header) else {
            return;
        };
        let place = (program as u16, report.header.slot);
        let (now, due) = (report.record.now(), flow.next_query());
        // A clock that ran out before this record decides by those before, however late the agent
        // wakes (decision 35).
        if flow.has_clock() && due <= now && flow.is_due(due) {
            self.answer(place, due, now);
        }
        let Some(flow) = self.flows[program].of(&report.header) else {
            return;
        };
        let thought = flow.acknowledged(due);
        let is_asked = flow.on_record(&report.record);
        flow.tell_range();
        if flow.stops_learning() {
            tracing::warn!(
                flow = flow.number(),
                policy = flow.policy(),
                "the flow goes on with what it had learned: a gradient step failed, and it takes no more"
            );
        }
        if flow.has_diverged() {
            self.on_divergence(place);
        }
        if is_asked {
            self.wait_policy.on_question(place, due, now, thought);
            self.answer(place, now, now);
        }
    }

    /// A flow's learner has diverged with its newest record.
    fn on_divergence(&mut self, place: FlowSlot) {
        let Some(flow) = self.flows[usize::from(place.0)].get(place.1) else {
            return;
        };
        self.statistics.divergences += 1;
        // What it diverged from later is its own.
        if flow.divergences() == 1
            && let Some(served) = flow.learns()
        {
            (self.store).forget(served, flow.class, flow.number(), flow.started_from);
        }
        tracing::warn!(
            flow = flow.number(),
            policy = flow.policy(),
            "Cubic controls the flow for a while: its learner diverged, and starts again"
        );
    }

    /// Answers a flow, as of `now` and with what it had said until `read`, and sees to it that
    /// somebody is there when it asks next, or its clock decides.
    fn answer(&mut self, place: FlowSlot, now: Time, read: Time) {
        let program = usize::from(place.0);
        let Some(flow) = self.flows[program].at(place.1) else {
            return;
        };
        let (before, decisions) = (flow.next_query(), flow.decisions());
        let (statistics, shadow) = (&mut self.statistics, self.shadow.as_mut());
        flow.answer(&self.programs[program], now, read, statistics, shadow);
        let due = flow.next_query();
        if flow.has_clock() {
            self.wait_policy.on_answer(flow.last_answer(), place, None);
            if due != before {
                self.timers.set(place, due);
            }
        } else {
            // What nobody decides for asks too, but once a second, and would fill the list.
            let expected = (flow.decisions() > decisions).then_some(due);
            self.wait_policy
                .on_answer(flow.last_answer(), place, expected);
        }
    }

    fn on_close(&mut self, program: usize, report: &Report) {
        let Some(flow) = self.flows[program].take(&report.header) else {
            return;
        };
        tracing::debug!(
            flow = flow.number(),
            delivered = report.record.delivered,
            lost = report.record.lost,
            "the flow ended"
        );
        self.on_end(&flow);
    }

    fn on_end(&mut self, flow: &Flow) {
        keep(&mut self.store, flow);
    }

    fn on_verdict(&mut self, program: usize, verdict: &VerdictMessage) {
        let number = verdict.header.flow;
        let reason = statistics::reason(verdict.reason);
        if verdict.reason == 0 {
            tracing::info!(
                flow = number,
                trips = verdict.trips,
                "the guard gave the flow back to its policy"
            );
        } else {
            tracing::warn!(
                flow = number,
                reason,
                trips = verdict.trips,
                "the guard tripped: Cubic controls the flow"
            );
        }
        if let Some(flow) = self.flows[program].of(&verdict.header) {
            flow.on_verdict(verdict);
        }
    }

    /// Says to the programs whether their messages are being read, if they do not know: each flow
    /// that sends a message reads that.
    fn set_awake(&mut self, is_awake: bool) {
        if self.is_awake != is_awake {
            self.programs.iter().for_each(|p| p.set_awake(is_awake));
            self.is_awake = is_awake;
        }
    }

    /// It is awake all the time from now on.
    pub(crate) fn poll_busily(&mut self) {
        self.wait_policy.is_busy = true;
    }

    /// The time by the programs' clock.
    fn now(&self) -> Time {
        self.programs[0].now()
    }

    /// Decides where a clock, not an acknowledgement, says when, and serves those who have waited.
    /// That ends a turn. Returns how to wait for what comes next.
    pub fn on_timers(&mut self, now: Time) -> Wait {
        self.say_served(now);
        while let Some((due, place)) = self.timers.due(now) {
            let flow = self.flows[usize::from(place.0)].get(place.1);
            // Another may have the slot by now, or have asked meanwhile.
            let Some(flow) = flow.filter(|flow| flow.next_query() == due) else {
                continue;
            };
            // Nothing was heard of it since its last decision: its next acknowledgement asks.
            if !flow.is_due(now) {
                self.wait_policy.expect(place, due);
                continue;
            }
            let user = flow.user();
            if self.shares.is_next(user) {
                self.work_for(user, place, None);
            } else {
                self.shares.delay(user, place, None);
            }
        }
        while let Some((user, place, report)) = self.shares.next() {
            self.work_for(user, place, report.as_ref());
        }
        let waits = self.shares.end_turn();
        if now >= self.saves {
            self.saves = now + SAVE_EVERY;
            self.keep_learned();
            self.store.save();
            for flows in &mut self.flows {
                flows.let_go_of_silent_learners(now);
            }
        }
        let acknowledged = |place: FlowSlot, from| {
            let flow = self.flows[usize::from(place.0)].get(place.1);
            flow.map_or(from, |flow| flow.acknowledged(from))
        };
        let wait = self.wait_policy.wait(now, self.timers.next(), acknowledged);
        if waits {
            Wait::Nap(Duration::ZERO)
        } else {
            wait
        }
    }

    /// Tells the programs that the agent is there, but not at each turn: each flow that sends a
    /// message reads what else is in that cache line.
    fn say_served(&mut self, now: Time) {
        if self.served_until >= now + SERVES_FOR / 2 {
            return;
        }
        self.served_until = now + SERVES_FOR;
        for program in &self.programs {
            program.set_served_until(self.served_until);
        }
    }

    /// Takes other policies: flows that begin from now on have them. Those that there are have them
    /// by [`Self::renew`]. If one of them cannot be used, nothing changes.
    ///
    /// # Errors
    /// One line.
    pub fn take_policies(&mut self, policies: Vec<Option<Policies>>) -> Result<()> {
        for (program, policies) in self.programs.iter().zip(&policies) {
            policies
                .iter()
                .try_for_each(|p| p.check(program.controller(), self.options))?;
        }
        // New settings do not say that it is.
        self.is_awake = false;
        for (program, policies) in self.programs.iter_mut().zip(&policies) {
            if let Some(policies) = policies {
                policies.configure(program, self.options)?;
            }
        }
        self.policies = policies;
        Ok(())
    }

    /// Gives a few of the flows, from this place on, the policies that there are now. Returns where
    /// to go on.
    pub fn renew(&mut self, from: FlowSlot) -> Option<FlowSlot> {
        let (places, next) = self.places(from, RENEWED_AT_ONCE);
        // Who learns goes on, before others begin to.
        let mut learning = Learning::default();
        for (flows, policies) in self.flows.iter().zip(&self.policies) {
            let learn = flows.iter().filter(|flow| flow.learns().is_some());
            for flow in learn.filter(|flow| will_learn(policies.as_ref(), flow)) {
                learning.add(flow.user());
            }
        }
        for (program, slot) in places {
            let program = usize::from(program);
            let flow = self.flows[program].get(slot);
            let Some((flow, policies)) = flow.zip(self.policies[program].as_ref()) else {
                continue;
            };
            let wanted = policies.of(flow.remote().ip());
            let class = policies.class(flow.remote().ip());
            let stays = flow.learns().is_some() && wanted.is_learning();
            let served = match stays {
                true => Some(Arc::clone(&wanted)),
                false => {
                    let wanted = Arc::clone(&wanted);
                    let served = self.learners.admit(wanted, flow.user(), &[&learning]);
                    if served.as_ref().is_some_and(|s| s.is_learning()) {
                        learning.add(flow.user());
                    }
                    served
                }
            };
            let is_refused = is_refused(Some(&wanted), served.as_ref());
            if is_refused && !flow.is_refused {
                self.learners.count_refused(&wanted, served.as_deref());
            }
            // What it has goes on where there is nothing for it, or nobody goes on deciding.
            let mut driver = None;
            let mut started_from = None;
            if let Some(served) = served {
                started_from = self.store.version(&served, class);
                let learned = self.store.learned(&served, class);
                match flow.policy_of(served, learned) {
                    Ok(next) => driver = next,
                    Err(error) => {
                        tracing::error!(flow = flow.number(), %error, "the flow goes on with the policy that it has");
                    }
                }
            }
            self.flows[program].change(slot, |flow| {
                (flow.is_refused, flow.class) = (is_refused, class);
                if let Some(driver) = driver {
                    flow.take_policy(driver);
                    flow.started_from = started_from;
                    flow.step_elsewhere(self.gradients.as_ref());
                }
            });
        }
        next
    }

    /// At most `most` flows, from this place on, and where those begin that follow.
    fn places(&self, from: FlowSlot, most: usize) -> (Vec<FlowSlot>, Option<FlowSlot>) {
        let programs = self.flows.iter().zip(0..);
        let mut all =
            programs.flat_map(|(flows, program)| flows.slots().map(move |slot| (program, slot)));
        let mut rest = all.by_ref().skip_while(|place| *place < from);
        let places = rest.by_ref().take(most).collect();
        (places, rest.next())
    }

    /// Sets parameters of a flow's controller, or of all that are a tuner's and of those that begin
    /// later. Returns of how many that there are.
    ///
    /// # Errors
    /// One line, if there is no such flow, or what is to be set is wrong.
    pub fn set(&mut self, number: Option<u32>, settings: &str) -> Result<usize> {
        let settings = tuning::read(settings)?;
        if number.is_none() {
            let is_set = |name| settings.iter().any(|(set, _)| *set == name);
            self.tuned.retain(|(name, _)| !is_set(*name));
            self.tuned.extend(&settings);
        }
        let mut found = 0;
        for (flows, program) in self.flows.iter_mut().zip(&self.programs) {
            for flow in flows.iter_mut() {
                if number.is_none_or(|wanted| wanted == flow.number()) {
                    found += usize::from(flow.set(&settings, program, &mut self.statistics));
                }
            }
        }
        match (number, found) {
            (Some(number), 0) => Err(Error::Usage(format!(
                "no flow {number} whose parameters may be set; headwayd status lists them, of headway_bbr without a policy"
            ))),
            _ => Ok(found),
        }
    }

    /// Keeps, of each policy and class of destinations, what the flow with the most experience has
    /// learned, if it is good.
    fn keep_learned(&mut self) {
        if !self.store.is_kept() {
            return;
        }
        let mut flows: Vec<&Flow> = (self.flows.iter().flat_map(Flows::iter))
            .filter(|flow| flow.learns().is_some())
            .collect();
        flows.sort_unstable_by_key(|flow| std::cmp::Reverse(flow.experience()));
        // Once one is kept, those with less of the same policy and class are not wanted.
        flows.iter().for_each(|flow| keep(&mut self.store, flow));
    }

    /// Saves what flows have learned, and ends.
    pub fn save(&mut self) {
        self.keep_learned();
        self.store.end();
        if let Some(shadow) = &mut self.shadow {
            shadow.finish();
        }
    }

    /// What happens, but for each flow: it takes the same time however many there are.
    pub fn counters(&self, now: Time) -> serde_json::Value {
        let controllers: Vec<_> = (self.programs.iter().zip(&self.policies))
            .map(|(program, policies)| {
                let mut said = match policies {
                    Some(policies) => policies.describe(program.name()),
                    None => serde_json::json!({ "name": program.name() }),
                };
                said["program"] = program.version().into();
                said
            })
            .collect();
        let flows = self.flows.iter().map(Flows::count).sum();
        let mut counters = self.statistics.counters(&self.programs, flows);
        let learning = self.flows.iter().map(|flows| flows.learning().all());
        counters["learners"] = learning.sum::<usize>().into();
        counters["shadow_dropped"] = self.shadow.as_ref().map_or(0, Shadow::dropped).into();
        counters["delayed"] = self.shares.delayed().into();
        counters["learners_refused"] = self.learners.refused().into();
        serde_json::json!({
            "schema": 1,
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_s": now.since(self.begun).as_secs_f64(),
            "shadow": self.shadow.is_some(),
            "controllers": controllers,
            "counters": counters,
            "latency_us": self.statistics.latency(),
        })
    }

    /// What happens, but for the flows: for `headwayd status`.
    pub fn summary(&self, now: Time) -> serde_json::Value {
        let mut summary = self.counters(now);
        summary["network"] = self.paths.describe().into();
        summary
    }

    /// What is said of some of the flows, from this place on, and where to go on.
    pub fn page(&self, from: FlowSlot, now: Time) -> (Vec<serde_json::Value>, Option<FlowSlot>) {
        let (places, next) = self.places(from, TOLD_AT_ONCE);
        let flows = places.into_iter().filter_map(|(program, slot)| {
            let program = usize::from(program);
            let kernel = &self.programs[program];
            let flow = self.flows[program].get(slot)?;
            let mut said = flow.describe(kernel.name(), now);
            said["program"] = kernel.version().into();
            Some(said)
        });
        (flows.collect(), next)
    }
}

/// The flows that an earlier agent knew of: those that live report.
fn known_flows(program: &impl Kernel) -> Flows {
    let mut flows = Flows::default();
    for known in program.known() {
        flows.put(known);
    }
    flows
}

/// Has a flow a policy that learns by these policies?
fn will_learn(policies: Option<&Policies>, flow: &Flow) -> bool {
    policies
        .is_some_and(|policies| policies.learn() && policies.of(flow.remote().ip()).is_learning())
}

/// Was a flow to learn, and does what it has instead not?
fn is_refused(wanted: Option<&Arc<PolicySpec>>, served: Option<&Arc<PolicySpec>>) -> bool {
    let learns =
        |served: Option<&Arc<PolicySpec>>| served.is_some_and(|served| served.is_learning());
    learns(wanted) && !learns(served)
}

/// Keeps what a flow has learned, if the store asks for it: only then is it serialised. Nothing is
/// kept of a flow that did worse than Cubic, or that the guard had within the last minute.
fn keep(store: &mut Store, flow: &Flow) {
    if flow.is_good()
        && let Some(served) = flow.learns()
        && store.wants(served, flow.class, flow.experience())
        && let Some((served, learned)) = flow.learned()
    {
        store.keep(
            served,
            flow.class,
            learned,
            flow.experience(),
            flow.number(),
        );
    }
}

#[cfg(test)]
mod tests;
