//! A flow that is served.

mod described;
mod driver;

use std::mem::swap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use headway_cc::{Bytes, Duration, Param, Setup, Time};
use headway_kernel::abi::{ActionSlot, Known, LEARNER, Message, Open, VerdictMessage};
use headway_policy::dqn::Step;
use headway_policy::model::TrainingRange;
use headway_policy::schemes::{Experience, FlowPolicy, PolicySpec};
use headway_policy::{Action, ClockSpec, Record};

use super::Class;
use super::paths::Paths;
use super::quality::Quality;
use super::range::{Outside, PathWatch};
use super::statistics::Statistics;
use super::store::Version;
use super::{Kernel, Shadow};
use crate::error::Result;
use driver::Driver;

/// From then on an action is not carried out any more.
const EXPIRES_AFTER: Duration = Duration::from_secs(1);
/// How often a flow asks whether its parameters are still the same.
const TUNERS_PATIENCE: Duration = Duration::from_millis(500);
/// How often a flow that nobody decides for asks whether somebody does: `HEADWAY_LATEST_DUE_NS`, no
/// program waits longer.
const NOBODYS_PATIENCE: Duration = Duration::from_secs(1);
/// Records that are further apart say nothing of when the next comes.
const PAUSE: Duration = Duration::from_millis(10);
/// A flow that has said nothing for this time may have ended, and what said so found no room in the
/// ring: its clock stands still until it says something, and another may learn in its place.
const SILENT_AFTER: Duration = Duration::from_secs(300);

/// A flow that is served.
#[derive(Debug)]
pub struct Flow {
    driver: Driver,
    setup: Setup,
    known: Known,
    number: u32,
    slot: u16,
    /// Whose socket it is.
    user: u32,
    local: SocketAddr,
    remote: SocketAddr,
    last: Record,
    /// What the connection had counted under another controller, or another policy; there from the
    /// first record on.
    before: Option<Record>,
    /// How far apart its records are, on average.
    apart: Duration,
    /// From when on it may ask next, as the newest answer told it.
    next_query: Time,
    /// When it asked last.
    last_query: Time,
    /// Questions that it asked up to this time have been answered.
    answered_through: Time,
    /// When the newest answer was given.
    last_answer: Time,
    /// When the newest decision expires, until a record says whether it was carried out.
    untold: Option<Time>,
    decisions: u64,
    guard: Guarded,
    /// Of a flow that learns, from its first record on.
    quality: Option<Box<Quality>>,
    /// Compares its path with its model's training range, if the model has one, from its first
    /// record on.
    watch: Option<Box<PathWatch>>,
    /// Does Cubic control it while its path is outside that range?
    pub requires_range: bool,
    /// Is the policy only asked, and Cubic controls the flow?
    pub is_shadow: bool,
    /// What of its path was outside when its newest record came, and Cubic controls it for that.
    left: Option<Outside>,
    /// That, as the log has it.
    logged: Option<Outside>,
    /// Decisions that the flow carried out while its path was outside.
    outside: u64,
    /// Decisions that the flow carried out and that changed window or rate by the most that its
    /// model can.
    at_bound: u64,
    /// Its learner has diverged, and has the flow again only after a while.
    stands_by: bool,
    /// That began with the newest record.
    has_diverged: bool,
    /// How often it did, under this policy.
    divergences: u64,
    /// Its learner has ended, and its policy goes on with what it had learned.
    has_ended_learning: bool,
    /// The path that it takes, as the network calls it; empty where nobody tells of it.
    path: String,
    /// When that was told of last.
    last_news: Time,
    /// It was to learn, while as many did as may.
    pub is_refused: bool,
    /// The class of its destination.
    pub class: Class,
    /// What was kept of that class as its learner started from it.
    pub started_from: Option<Version>,
}

impl Flow {
    /// That opens.
    ///
    /// # Errors
    /// One line, if its policy cannot be had.
    pub fn new(
        open: &Open,
        served: Option<Arc<PolicySpec>>,
        learned: Option<&Experience>,
    ) -> Result<Flow> {
        let flow = Flow::of_nobody(open);
        let driver = match served {
            Some(served) => Driver::of(served, &flow.setup, learned)?,
            None => Driver::Tuner(Vec::new(), Vec::new()),
        };
        Ok(Flow { driver, ..flow })
    }

    /// That opens, and nobody decides for.
    pub fn of_nobody(open: &Open) -> Flow {
        let mss = Bytes::new(open.mss.into());
        // No two flows draw the same random numbers, not even flows of two agents, which both count
        // from 0.
        let seed = open.start_ns ^ u64::from(open.header.flow);
        let setup = Setup {
            initial_cwnd: mss * u64::from(open.initial_cwnd),
            start: Time::from_nanos(open.start_ns),
            ..Setup::new(mss, seed)
        };
        Flow {
            driver: Driver::Nobody,
            setup,
            known: Known::of(*open),
            number: open.header.flow,
            slot: open.header.slot,
            user: open.user,
            local: SocketAddr::new(address(open.local_address), open.local_port),
            remote: SocketAddr::new(remote(open), open.remote_port),
            last: Record::default(),
            before: None,
            apart: Duration::ZERO,
            next_query: Time::ZERO,
            last_query: Time::ZERO,
            answered_through: Time::ZERO,
            last_answer: Time::ZERO,
            untold: None,
            decisions: 0,
            guard: Guarded::default(),
            quality: None,
            watch: None,
            requires_range: false,
            is_shadow: false,
            left: None,
            logged: None,
            outside: 0,
            at_bound: 0,
            stands_by: false,
            has_diverged: false,
            divergences: 0,
            path: String::new(),
            last_news: Time::ZERO,
            is_refused: false,
            class: Class::Public,
            has_ended_learning: false,
            started_from: None,
        }
    }

    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    pub fn number(&self) -> u32 {
        self.number
    }

    pub fn user(&self) -> u32 {
        self.user
    }

    /// From when on it may ask next, as the newest answer told it.
    pub fn next_query(&self) -> Time {
        self.next_query
    }

    /// When that was given.
    pub fn last_answer(&self) -> Time {
        self.last_answer
    }

    /// When its first acknowledgement from a time on is to be expected, by the newest.
    pub fn acknowledged(&self, from: Time) -> Time {
        let (last, apart) = (self.last.now(), self.apart.as_nanos().max(1));
        last + self.apart * from.since(last).as_nanos().div_ceil(apart).max(1)
    }

    /// Does its policy's clock decide then, whether it asks or not?
    pub fn has_clock(&self) -> bool {
        let agent = self.driver.served().and_then(PolicySpec::agent);
        match agent.map(|agent| &agent.clock) {
            Some(ClockSpec::Period { .. } | ClockSpec::Rtt { .. } | ClockSpec::Chosen { .. }) => {
                true
            }
            Some(ClockSpec::EveryAck | ClockSpec::Jiffies { .. }) | None => false,
        }
    }

    pub fn policy(&self) -> Option<&str> {
        self.driver.served().map(PolicySpec::spec)
    }

    /// The model of its policy: its name, and a digest.
    pub fn model_id(&self) -> Option<&str> {
        self.driver.served().map(PolicySpec::model_id)
    }

    /// How many gradients its policy has learned from, with those that it began with. Rax starts
    /// again at 0 where it diverges.
    pub fn experience(&self) -> u64 {
        self.driver.carried().map_or(0, FlowPolicy::updates)
    }

    /// May others begin with what it has learned?
    pub fn is_good(&self) -> bool {
        let is_good = |quality: &Quality| quality.is_good(self.last.now());
        !self.in_fallback() && self.quality.as_deref().is_some_and(is_good)
    }

    /// The policy that learns with it.
    pub fn learns(&self) -> Option<&PolicySpec> {
        self.driver.served().filter(|served| served.is_learning())
    }

    /// What its policy has learned.
    pub fn learned(&self) -> Option<(&PolicySpec, Vec<u8>)> {
        let (served, carried) = self.driver.served().zip(self.driver.carried())?;
        Some((served, served.learned(carried)?))
    }

    /// Lets that thread take its policy's gradient steps.
    pub fn step_elsewhere(&mut self, thread: Option<&SyncSender<Step>>) {
        if let (Driver::Policy(_, carried), Some(thread)) = (&mut self.driver, thread) {
            carried.step_on_thread(thread);
        }
    }

    /// Has its learner ended for good since this was asked last?
    pub fn stops_learning(&mut self) -> bool {
        let carried = self.driver.carried();
        carried.is_some_and(FlowPolicy::has_ended_learning)
            && !std::mem::replace(&mut self.has_ended_learning, true)
    }

    /// Takes its state. Is an answer waited for?
    pub fn on_record(&mut self, record: &Record) -> bool {
        let since = record.now().since(self.last.now()).min(PAUSE);
        self.apart = (self.apart * 7 + since) / 8;
        self.hear_of_answer(record);
        self.last = *record;
        if self.learns().is_some() {
            let quality = self
                .quality
                .get_or_insert_with(|| Box::new(Quality::new(record)));
            quality.on_record(record);
        }
        if let Some(range) = self.range() {
            let policy_acts = self.is_carried_out();
            let first = || Box::new(PathWatch::new(range, record));
            let watch = self.watch.get_or_insert_with(first);
            watch.on_record(record, policy_acts);
            let outside = watch.outside(record.now());
            self.left = outside.filter(|_| self.requires_range);
        }
        let is_first = self.before.is_none();
        let setup = &self.setup;
        let before = self
            .before
            .get_or_insert_with(|| counted_before(record, setup));
        if let Driver::Policy(_, carried) = &mut self.driver {
            let mut seen = record.since(before);
            // The window that it begins with somebody else has set.
            if is_first && *before != Record::default() && matches!(carried, FlowPolicy::Rax(_)) {
                seen.flags |= Record::TRIPPED;
            }
            if self.left.is_some() {
                seen.flags |= Record::TRIPPED;
            }
            carried.on_record(&seen);
            let stands_by =
                matches!(carried, FlowPolicy::Rax(rax) if rax.cwnd(record.now()).is_none());
            self.has_diverged = stands_by && !self.stands_by;
            self.stands_by = stands_by;
            self.divergences += u64::from(self.has_diverged);
        }
        if record.has(Record::ASKS) {
            self.last_query = record.now();
        }
        // While a clock's answer was given it may have asked. That answer has to be found before
        // another takes its place.
        self.answered_through < self.last_query && self.last_answer <= record.now()
    }

    /// A program looks for an answer at each acknowledgement, just before that is reported: the
    /// first record after the newest answer says whether that was carried out. At a timeout no
    /// program looks. A record of several acknowledgements says it of the last of them. At
    /// the record with which the guard returns the flow, the answer was looked for while Cubic
    /// still had it. At the record with which the guard takes the flow, it may have been carried
    /// out: the learner does without that transition.
    fn hear_of_answer(&mut self, record: &Record) {
        if record.acks == 0 || record.now() <= self.last_answer {
            return;
        }
        let Some(expires) = self.untold.take() else {
            return;
        };
        let is_tripped = record.has(Record::TRIPPED) || self.last.has(Record::TRIPPED);
        if is_tripped || !record.has(Record::STEERABLE) || record.now() >= expires {
            self.refuse();
        }
    }

    /// Its policy's newest answer was not carried out.
    fn refuse(&mut self) {
        if let Driver::Policy(_, FlowPolicy::Net(decider)) = &mut self.driver {
            decider.policy_mut().on_refused();
        }
    }

    /// Hears what the network told last of its path, once.
    pub fn on_network(&mut self, paths: &Paths) {
        let Some((path, heard)) = paths.of(self.local.ip(), self.remote.ip()) else {
            return;
        };
        if heard <= self.last_news {
            return;
        }
        self.last_news = heard;
        if self.path != path.name {
            self.path.clone_from(&path.name);
        }
        if let Driver::Policy(_, FlowPolicy::Net(decider)) = &mut self.driver {
            decider.on_network(heard, &path.view);
        }
    }

    /// The training range of its model.
    fn range(&self) -> Option<TrainingRange> {
        self.driver.served().and_then(PolicySpec::range)
    }

    /// Writes into the log that Cubic controls it for its path, or does no longer.
    pub fn tell_range(&mut self) {
        if self.left.is_some() == self.logged.is_some() {
            return;
        }
        self.logged = self.left;
        match self.left {
            Some(what) => tracing::info!(
                flow = self.number,
                outside = what.name(),
                "Cubic controls the flow: its path is outside the training range"
            ),
            None => tracing::info!(
                flow = self.number,
                "the policy controls the flow again: its path is inside the training range"
            ),
        }
    }

    /// Did its learner diverge with the newest record?
    pub fn has_diverged(&self) -> bool {
        self.has_diverged
    }

    /// How often it did, since its policy took the flow.
    pub fn divergences(&self) -> u64 {
        self.divergences
    }

    /// Is it time to decide, though no acknowledgement came?
    pub fn is_due(&self, now: Time) -> bool {
        let is_due = match self.driver.carried() {
            Some(FlowPolicy::Net(decider)) => decider.is_due(now),
            Some(FlowPolicy::Rax(_)) | None => false,
        };
        is_due && self.last.has(Record::STEERABLE) && !self.is_silent(now)
    }

    /// Has it said nothing for long? It may have ended.
    pub fn is_silent(&self, now: Time) -> bool {
        now.since(self.last.now()) >= SILENT_AFTER
    }

    /// How it opened, and what the guard judged last.
    pub fn known(&self) -> Known {
        self.known
    }

    pub fn on_verdict(&mut self, verdict: &VerdictMessage) {
        self.known.take(&Message::Verdict(*verdict));
        self.guard = Guarded {
            reason: verdict.reason,
            trips: verdict.trips,
            at_ns: verdict.now_ns,
        };
    }

    /// Decisions so far.
    pub fn decisions(&self) -> u64 {
        self.decisions
    }

    /// Decides if it is time, and answers in any case, with what it had said until `read`.
    pub fn answer(
        &mut self,
        program: &impl Kernel,
        now: Time,
        read: Time,
        statistics: &mut Statistics,
        shadow: Option<&mut Shadow>,
    ) {
        let at_bound = self.at_bound;
        let (mut slot, is_decision) =
            self.decide(program.controller().tunables(), now, read, shadow);
        // What the flow asks from then on the guard takes for open, and so does `on_record`.
        self.last_answer = program.now();
        slot.answered_ns = self.last_answer.as_nanos();
        program.write_slot(self.slot, &slot);
        if is_decision {
            self.decisions += 1;
            statistics.decisions += 1;
            statistics.at_bound += self.at_bound - at_bound;
            let watch = self.watch.as_deref();
            let is_outside = |watch: &PathWatch| watch.outside(self.last.now()).is_some();
            if self.is_carried_out() && watch.is_some_and(is_outside) {
                self.outside += 1;
                statistics.outside += 1;
            }
            if self.answered_through >= statistics.begun {
                statistics
                    .latency
                    .add(self.last_answer.since(self.answered_through));
            }
            if let Driver::Policy(_, FlowPolicy::Net(decider)) = &mut self.driver {
                decider.on_action(self.last_answer.since(now));
            }
        }
    }

    /// What it is told, and whether that was decided now.
    fn decide(
        &mut self,
        tunables: &[Param],
        now: Time,
        read: Time,
        shadow: Option<&mut Shadow>,
    ) -> (ActionSlot, bool) {
        // No acknowledgement has found the answer before, and this one takes its place.
        if self.untold.take().is_some() {
            self.refuse();
        }
        let is_carried_out = self.is_carried_out();
        let flags = if self.learns().is_some() { LEARNER } else { 0 };
        let (slot, due, is_decision) = match &mut self.driver {
            Driver::Policy(served, FlowPolicy::Net(decider)) => {
                let mut action = Action::Nothing;
                let is_decision = decider.is_due(now);
                if is_decision {
                    let answer = decider.decide(now);
                    let agent = served.agent();
                    let at_bound = (answer.zip(agent))
                        .is_some_and(|(a, agent)| agent.action.is_at_bound(a.action));
                    self.at_bound += u64::from(at_bound && is_carried_out);
                    action = (answer.zip(agent))
                        .map_or(action, |(a, agent)| agent.action.action(a.action));
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
                    shadow.write(served, self.number, self.remote, &self.last, action);
                }
                let slot = match self.left {
                    None => ActionSlot::of(told, tunables),
                    Some(_) => ActionSlot::leave(),
                };
                (slot, decider.due(), is_decision)
            }
            Driver::Policy(_, FlowPolicy::Rax(_)) if self.left.is_some() => {
                (ActionSlot::leave(), now + NOBODYS_PATIENCE, false)
            }
            // It has decided with the record that asks. One that diverged gives its flow to Cubic
            // meanwhile.
            Driver::Policy(_, FlowPolicy::Rax(rax)) => match (rax.cwnd(now), shadow) {
                (None, _) => (ActionSlot::leave(), now + NOBODYS_PATIENCE, false),
                (Some(_), Some(_)) => (ActionSlot::default(), now, true),
                (Some(cwnd), None) => (ActionSlot::of_cwnd(cwnd), now, true),
            },
            // Said again with each answer: none is ever lost.
            Driver::Tuner(names, values) => {
                let action = Action::Settings(names, values);
                (
                    ActionSlot::of(action, tunables),
                    now + TUNERS_PATIENCE,
                    false,
                )
            }
            Driver::Nobody => (ActionSlot::leave(), now + NOBODYS_PATIENCE, false),
        };
        self.next_query = due;
        // A clock may have decided before the newest question, which has its answer with that all
        // the same.
        self.answered_through = now.max(read);
        let expires = self.answered_through + EXPIRES_AFTER;
        self.untold = is_decision.then_some(expires);
        let slot = ActionSlot {
            decided_ns: self.answered_through.as_nanos(),
            expires_ns: expires.as_nanos(),
            due_ns: due.as_nanos(),
            flow: self.number,
            flags,
            ..slot
        };
        (slot, is_decision)
    }

    /// Sets parameters of the base controller and sends them to the program. They stay set. Tells
    /// whether a tuner sets this flow's parameters.
    pub fn set(
        &mut self,
        settings: &[(&str, f64)],
        program: &impl Kernel,
        statistics: &mut Statistics,
    ) -> bool {
        let is_tuners = self.tune(settings);
        if is_tuners {
            let now = program.now();
            self.answer(program, now, now, statistics, None);
        }
        is_tuners
    }

    /// The same, told when it asks next.
    pub fn tune(&mut self, settings: &[(&str, f64)]) -> bool {
        self.driver.tune(settings)
    }

    /// A policy that may decide for it; none where the present one is to go on: one that learns, of
    /// the same model and spec.
    ///
    /// # Errors
    /// One line, if it cannot be had.
    pub fn policy_of(
        &self,
        served: Arc<PolicySpec>,
        learned: Option<&Experience>,
    ) -> Result<Option<Driver>> {
        // What it has learned since is more than what was kept.
        if served.is_learning() && self.driver.is_of(&served) {
            return Ok(None);
        }
        Driver::of(served, &self.setup, learned).map(Some)
    }

    /// Replaces the policy. The flow's observations stay if both policies observe the same
    /// features. Its count of decisions goes on if both are the same model.
    pub fn take_policy(&mut self, mut next: Driver) {
        // That answer was another's.
        self.untold = None;
        let is_same = (next.served()).is_some_and(|served| self.driver.is_of(served));
        if !is_same {
            (self.decisions, self.quality) = (0, None);
            self.has_ended_learning = false;
            (self.watch, self.left) = (None, None);
            (self.outside, self.at_bound) = (0, 0);
        }
        match (&mut self.driver, &mut next) {
            (
                Driver::Policy(before, FlowPolicy::Net(decider)),
                Driver::Policy(served, FlowPolicy::Net(new)),
            ) if before.agent() == served.agent() => {
                swap(decider.policy_mut(), new.policy_mut());
                swap(before, served);
            }
            // It begins with what comes: the flow's history is not its own.
            _ => (self.driver, self.before, self.divergences) = (next, None, 0),
        }
    }

    /// Does the flow carry out what its policy decides? In a shadow, outside a required range, and
    /// while the guard has the flow, Cubic controls it instead.
    fn is_carried_out(&self) -> bool {
        !self.is_shadow && self.left.is_none() && !self.in_fallback()
    }

    /// Does Cubic decide? A verdict may have found no room in the ring: what is newer counts.
    pub fn in_fallback(&self) -> bool {
        match self.last.now_ns >= self.guard.at_ns {
            true => self.last.has(Record::TRIPPED),
            false => self.guard.reason != 0,
        }
    }
}

/// What the guard said last.
#[derive(Clone, Copy, Debug, Default)]
struct Guarded {
    reason: u32,
    trips: u32,
    at_ns: u64,
}

/// What a connection had counted before it chose this controller: the first acknowledgement of one
/// that has just begun is for its SYN and its first window at most.
fn counted_before(first: &Record, setup: &Setup) -> Record {
    let initial_cwnd = setup.initial_cwnd.get() / setup.mss.get().max(1);
    if u64::from(first.delivered) <= initial_cwnd + 1 {
        return Record::default();
    }
    Record {
        sent: first.sent.wrapping_sub(first.in_flight),
        ..*first
    }
}

/// Where a flow goes.
pub fn remote(open: &Open) -> IpAddr {
    address(open.remote_address)
}

fn address(octets: [u8; 16]) -> IpAddr {
    Ipv6Addr::from(octets).to_canonical()
}

#[cfg(test)]
pub mod tests;
