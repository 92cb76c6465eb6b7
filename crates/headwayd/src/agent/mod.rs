//! Serves flows: reads their records, and writes what their policies decide.

mod class;
mod described;
mod flow;
mod flows;
pub(crate) mod gradients;
mod kernel;
mod learners;
mod paths;
mod policies;
mod quality;
mod range;
mod reload;
mod serve;
mod shadow;
mod shares;
mod statistics;
mod store;
mod timers;
mod tuning;
mod turn;
mod wait;

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use headway_cc::{Duration, Time};
use headway_fixed::Reason;
use headway_kernel::abi::{Known, Message, Open, Report, VerdictMessage};
use headway_policy::dqn::Step;
use headway_policy::schemes::PolicySpec;

pub use class::Class;
pub use kernel::Kernel;
pub use policies::{AgentOptions, Policies};
pub(crate) use serve::serve;
pub use shadow::Shadow;
pub use store::{SavedStates, Store};
pub use turn::turn;
pub use wait::Wait;

use crate::error::{Error, Result};
use crate::network::News;
use flow::Flow;
use flows::Flows;
use learners::Learners;
use paths::Paths;
use shares::Shares;
use statistics::Statistics;
use store::Offer;
use timers::Timers;
use wait::WaitPolicy;

/// The agent's whole state.
pub struct Agent<K> {
    program: K,
    /// If this is `None`, a tuner sets the flows' parameters.
    policies: Option<Policies>,
    flows: Flows,
    timers: Timers,
    shares: Shares,
    wait_policy: WaitPolicy,
    /// Does the program know that its messages are being read?
    is_awake: bool,
    statistics: Statistics,
    shadow: Option<Shadow>,
    store: Store,
    options: AgentOptions,
    learners: Learners,
    /// The thread that takes gradient steps. Without it the agent takes them between answers.
    gradients: Option<SyncSender<Step>>,
    paths: Paths,
    /// The parameters that a tuner has set for all flows. New flows get them too.
    tuned: Vec<(&'static str, f64)>,
    begun: Time,
    /// The program gives slots to new flows until this time.
    served_until: Time,
    /// When the learned state is saved next.
    saves: Time,
}

/// An agent that has not renewed `served_until` for this time counts as gone, and Cubic controls
/// new flows until it does. A turn usually takes a few milliseconds, and a sleep 50 ms.
const SERVES_FOR: Duration = Duration::from_millis(500);
/// The time between two saves.
const SAVE_EVERY: Duration = Duration::from_secs(30);

impl<K: Kernel> Agent<K> {
    /// A new agent. It serves the flows of an earlier agent from their next record on.
    pub fn new(
        program: K,
        policies: Option<Policies>,
        shadow: Option<Shadow>,
        store: Store,
        options: AgentOptions,
        learners: usize,
        now: Time,
    ) -> Agent<K> {
        let mut flows = Flows::default();
        for known in program.known() {
            flows.put(known);
        }
        let mut agent = Agent {
            flows,
            program,
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

    /// Lets a thread take the gradient steps of flows that learn, so that no answer waits for a
    /// step.
    #[must_use]
    pub fn learning_on(mut self, thread: SyncSender<Step>) -> Agent<K> {
        self.gradients = Some(thread);
        self
    }

    /// Takes a message of the program.
    pub fn on_message(&mut self, bytes: &[u8]) {
        let message = match Message::read(bytes) {
            Ok(Message::Report(report)) => return self.on_asked(&report),
            Ok(message) => message,
            Err(error) => {
                self.statistics.malformed += 1;
                tracing::error!(%error, "a message from the kernel is malformed");
                return;
            }
        };
        self.program.remember(&message);
        match message {
            Message::Open(open) => self.on_open(&open),
            Message::Close(report) => self.on_close(&report),
            Message::Verdict(verdict) => self.on_verdict(&verdict),
            Message::Report(_) => {}
        }
    }

    /// Takes what the network reports about its paths. Each flow looks for its path with its next
    /// record, in its user's time.
    pub(crate) fn on_network(&mut self, news: News) {
        self.paths.take(news);
    }

    /// A flow opens. The slot's previous flow has ended; its CLOSE may have been dropped.
    fn on_open(&mut self, open: &Open) {
        if let Some(before) = self.flows.put(Known::of(*open)) {
            self.on_end(before);
        }
    }

    /// Begins to serve a flow, with its first record. Many flows never send one: receivers, and
    /// sockets that choose another controller.
    fn begin(&mut self, known: &Known) {
        let open = &known.open;
        let number = open.header.flow;
        let policies = self.policies.as_ref();
        let wanted = policies.map(|policies| policies.of(flow::remote(open)));
        let remote = flow::remote(open);
        let class = policies.map_or_else(|| Class::of(remote, None), |own| own.class(remote));
        let served = wanted.as_ref().and_then(|wanted| {
            let learning = self.flows.learning();
            self.learners.admit(Arc::clone(wanted), open.user, learning)
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
            true => Ok(Flow::without_policy(open)),
            false => Flow::new(open, served, learned),
        };
        let mut flow = flow.unwrap_or_else(|error| {
            tracing::error!(flow = number, %error, "the agent cannot serve the flow, so Cubic controls it");
            Flow::without_policy(open)
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
        tracing::debug!(flow = number, remote = %flow.remote(), policy = flow.policy(), "the flow began");
        self.flows.begin(open.header.slot, flow);
    }

    /// Takes a report: handles it at once, or lets it wait until it is its user's turn.
    fn on_asked(&mut self, report: &Report) {
        self.statistics.reports += 1;
        let Some(user) = self.flows.user(&report.header) else {
            self.statistics.unknown += 1;
            return;
        };
        let slot = report.header.slot;
        if self.shares.is_next(user) {
            self.work_for(user, slot, Some(report));
        } else {
            self.shares.delay(user, slot, Some(report));
        }
    }

    /// Serves a flow, and charges its user for the time. Without a report the flow's clock has run
    /// out.
    fn work_for(&mut self, user: u32, slot: u16, report: Option<&Report>) {
        let begun = self.program.now();
        match report {
            Some(report) => self.on_report(report),
            None => {
                let flow = self.flows.get(slot);
                if flow.is_some_and(|flow| flow.is_due(begun)) {
                    self.answer(slot, begun, begun);
                }
            }
        }
        let time = self.program.now().since(begun);
        self.shares.charge(user, time);
    }

    fn on_report(&mut self, report: &Report) {
        if let Some(known) = self.flows.opened(&report.header) {
            self.begin(&known);
        }
        // The flow may have ended while the report waited.
        let Some(flow) = self.flows.of(&report.header) else {
            return;
        };
        let slot = report.header.slot;
        let (now, due) = (report.record.now(), flow.next_query());
        // If a clock ran out before this record, it decides from the records before, however late
        // the agent wakes (decision 35).
        if flow.has_clock() && due <= now && flow.is_due(due) {
            self.answer(slot, due, now);
        }
        let Some(flow) = self.flows.of(&report.header) else {
            return;
        };
        flow.on_network(&self.paths);
        let expected_at = flow.acknowledged(due);
        let is_asked = flow.on_record(&report.record);
        flow.tell_range();
        if flow.stops_learning() {
            tracing::warn!(
                flow = flow.number(),
                policy = flow.policy(),
                "the flow stops learning, because a gradient step failed; it keeps what it has learned"
            );
        }
        if flow.has_diverged() {
            self.on_divergence(slot);
        }
        if is_asked {
            self.wait_policy.on_request(slot, due, now, expected_at);
            self.answer(slot, now, now);
        }
    }

    /// A flow's learner has diverged with its newest record.
    fn on_divergence(&mut self, slot: u16) {
        let Some(flow) = self.flows.get(slot) else {
            return;
        };
        self.statistics.divergences += 1;
        // Only the first divergence can be due to the saved state from which the flow started.
        if flow.divergences() == 1
            && let Some(served) = flow.learns()
        {
            match self.store.learns_from(flow.user()) {
                true => (self.store).forget(served, flow.class, flow.number(), flow.started_from),
                false => tracing::warn!(
                    flow = flow.number(),
                    user = flow.user(),
                    "the saved state stays although the flow may have diverged from it: --learn-from does not name its user"
                ),
            }
        }
        tracing::warn!(
            flow = flow.number(),
            policy = flow.policy(),
            "Cubic controls the flow for a while: its learner diverged, and starts again"
        );
    }

    /// Answers a flow as of `now`, where `read` is the time of its newest record. Has the agent
    /// awake for the flow's next request or its clock.
    fn answer(&mut self, slot: u16, now: Time, read: Time) {
        let Some(flow) = self.flows.at(slot) else {
            return;
        };
        let (before, decisions) = (flow.next_query(), flow.decisions());
        let (statistics, shadow) = (&mut self.statistics, self.shadow.as_mut());
        flow.answer(&self.program, now, read, statistics, shadow);
        let due = flow.next_query();
        if flow.has_clock() {
            self.wait_policy.on_answer(flow.last_answer(), slot, None);
            if due != before {
                self.timers.set(slot, due);
            }
        } else {
            // A flow without a decision sends a request once a second. Such requests would fill the
            // list.
            let expected = (flow.decisions() > decisions).then_some(due);
            self.wait_policy
                .on_answer(flow.last_answer(), slot, expected);
        }
    }

    fn on_close(&mut self, report: &Report) {
        let Some(flow) = self.flows.take(&report.header) else {
            return;
        };
        tracing::debug!(
            flow = flow.number(),
            delivered = report.record.delivered,
            lost = report.record.lost,
            "the flow ended"
        );
        self.on_end(flow);
    }

    /// Keeps what a flow has learned, and frees it. Its user is charged for the time.
    fn on_end(&mut self, flow: Box<Flow>) {
        let (begun, user) = (self.program.now(), flow.user());
        if let Some(offer) = flow.offer() {
            keep(&mut self.store, &flow, offer);
        }
        drop(flow);
        self.shares.charge(user, self.program.now().since(begun));
    }

    fn on_verdict(&mut self, verdict: &VerdictMessage) {
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
        let Some(flow) = self.flows.of(&verdict.header) else {
            return;
        };
        flow.on_verdict(verdict);
        // Late answers are the agent's doing.
        let policy_is_to_blame = !matches!(
            Reason::of(verdict.reason),
            Some(Reason::Fine | Reason::Stale)
        );
        if policy_is_to_blame
            && let Some(served) = flow.learns()
            && self.store.learns_from(flow.user())
        {
            (self.store).doubt(served, flow.class, flow.number(), flow.started_from);
        }
    }

    /// Tells the program whether its messages are being read. It writes only changes, because each
    /// flow that sends a message reads this.
    fn set_awake(&mut self, is_awake: bool) {
        if self.is_awake != is_awake {
            self.program.set_awake(is_awake);
            self.is_awake = is_awake;
        }
    }

    /// Keeps the agent awake from now on (`--busy-poll`).
    pub(crate) fn poll_busily(&mut self) {
        self.wait_policy.is_busy = true;
    }

    /// The time by the program's clock.
    fn now(&self) -> Time {
        self.program.now()
    }

    /// Ends a turn: decides for flows whose clocks have run out, and serves flows that have waited.
    /// Returns how to wait for the next turn.
    pub fn on_timers(&mut self, now: Time) -> Wait {
        self.say_served(now);
        while let Some((due, slot)) = self.timers.due(now) {
            let flow = self.flows.get(slot);
            // The slot may have another flow by now, or the flow may have been answered meanwhile.
            let Some(flow) = flow.filter(|flow| flow.next_query() == due) else {
                continue;
            };
            // The flow has sent no record since its last decision, so its next one is a request.
            if !flow.is_due(now) {
                self.wait_policy.expect(slot, due);
                continue;
            }
            let user = flow.user();
            if self.shares.is_next(user) {
                self.work_for(user, slot, None);
            } else {
                self.shares.delay(user, slot, None);
            }
        }
        while let Some((user, slot, report)) = self.shares.next() {
            self.work_for(user, slot, report.as_ref());
        }
        let waits = self.shares.end_turn();
        if now >= self.saves {
            self.saves = now + SAVE_EVERY;
            self.keep_learned();
            let flows = self.flows.iter();
            let learners = flows.filter_map(|flow| Some((flow.learns()?, flow.class)));
            self.store.drop_replaced(learners);
            self.store.read_again();
            self.store.save();
            self.flows.let_go_of_silent_learners(now);
        }
        let acknowledged = |slot, from| {
            let flow = self.flows.get(slot);
            flow.map_or(from, |flow| flow.acknowledged(from))
        };
        let wait = self.wait_policy.wait(now, self.timers.next(), acknowledged);
        if waits {
            Wait::Nap(Duration::ZERO)
        } else {
            wait
        }
    }

    /// Tells the program that the agent serves flows. It does so only now and then, because each
    /// flow that sends a message reads from the same cache line.
    fn say_served(&mut self, now: Time) {
        if self.served_until >= now + SERVES_FOR / 2 {
            return;
        }
        self.served_until = now + SERVES_FOR;
        self.program.set_served_until(self.served_until);
    }

    /// The slots of at most `most` flows, from this slot on, and the slot of the next flow.
    fn slots(&self, from: u16, most: usize) -> (Vec<u16>, Option<u16>) {
        let mut rest = self.flows.slots().skip_while(|slot| *slot < from);
        (rest.by_ref().take(most).collect(), rest.next())
    }

    /// Sets parameters of one flow. Without a number it sets them for all flows, later ones
    /// included. Returns the number of present flows that it changed.
    ///
    /// # Errors
    /// One line, if there is no such flow, or a setting is wrong.
    pub fn set(&mut self, number: Option<u32>, settings: &str) -> Result<usize> {
        let settings = tuning::read(settings)?;
        if number.is_none() {
            let is_set = |name| settings.iter().any(|(set, _)| *set == name);
            self.tuned.retain(|(name, _)| !is_set(*name));
            self.tuned.extend(&settings);
        }
        let mut found = 0;
        for flow in self.flows.iter_mut() {
            if number.is_none_or(|wanted| wanted == flow.number()) {
                found += usize::from(flow.set(&settings, &self.program, &mut self.statistics));
            }
        }
        match (number, found) {
            (Some(number), 0) => Err(Error::Usage(format!(
                "flow {number} does not exist or has no parameters to set; flows of headway_bbr without a policy have some, and headwayd status lists them"
            ))),
            _ => Ok(found),
        }
    }

    /// Keeps, for each policy and class of destinations, what the best flow has learned.
    fn keep_learned(&mut self) {
        if !self.store.is_kept() {
            return;
        }
        let offers = (self.flows.iter()).filter_map(|flow| Some((flow, flow.offer()?)));
        let mut offers: Vec<(&Flow, Offer)> = offers.collect();
        offers.sort_unstable_by_key(|(_, offer)| Reverse(offer.score));
        // Once one is kept, the store refuses what is worse.
        for (flow, offer) in offers {
            keep(&mut self.store, flow, offer);
        }
    }

    /// Saves what flows have learned, and finishes the shadow file.
    pub fn save(&mut self) {
        self.keep_learned();
        self.store.end();
        if let Some(shadow) = &mut self.shadow {
            shadow.finish();
        }
    }
}

/// Does `wanted` learn, and `served` not?
fn is_refused(wanted: Option<&Arc<PolicySpec>>, served: Option<&Arc<PolicySpec>>) -> bool {
    let learns =
        |served: Option<&Arc<PolicySpec>>| served.is_some_and(|served| served.is_learning());
    learns(wanted) && !learns(served)
}

/// Keeps what a flow has learned, if the store takes it: only then is it serialised. Nothing is
/// kept of a flow whose user the store does not learn from.
fn keep(store: &mut Store, flow: &Flow, offer: Offer) {
    if store.learns_from(flow.user())
        && let Some(served) = flow.learns()
        && store.wants(served, flow.class, &offer)
        && let Some((served, learned)) = flow.learned()
    {
        store.keep(served, flow.class, learned, &offer);
    }
}

#[cfg(test)]
#[path = "../../tests/agent/folder.rs"]
mod folder;
#[cfg(test)]
mod tests;
