//! A flow that is served.

mod described;
mod driver;

use std::mem::swap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use headway_cc::{Bytes, Duration, NetworkView, Param, Setup, Time};
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
use super::store::{Offer, Version};
use super::{Kernel, Shadow};
use crate::error::Result;
use driver::Driver;

/// The age at which an action is not carried out any more.
const EXPIRES_AFTER: Duration = Duration::from_secs(1);
/// The time between two requests of a flow whose parameters a tuner sets.
const TUNERS_PATIENCE: Duration = Duration::from_millis(500);
/// The time between two requests of a flow for which no policy decides. No program waits longer
/// than this (`HEADWAY_LATEST_DUE_NS`).
const NOBODYS_PATIENCE: Duration = Duration::from_secs(1);
/// Records that are further apart than this do not help to predict the next one.
const PAUSE: Duration = Duration::from_millis(10);
/// A flow without a record for this time may have ended: its CLOSE may have found no room in the
/// ring. Its clock stands still until it sends a record, and another flow may learn in its place.
const SILENT_AFTER: Duration = Duration::from_secs(300);

/// A flow that is served.
#[derive(Debug)]
pub struct Flow {
    driver: Driver,
    setup: Setup,
    known: Known,
    number: u32,
    slot: u16,
    /// The user who owns its socket.
    user: u32,
    local: SocketAddr,
    remote: SocketAddr,
    last: Record,
    /// What the connection had counted under another controller or policy. It is set with the first
    /// record.
    before: Option<Record>,
    /// The average time between two of its records.
    apart: Duration,
    /// The earliest time of its next request, from the newest answer.
    next_query: Time,
    /// When it sent its last request.
    last_query: Time,
    /// Its requests up to this time have been answered.
    answered_through: Time,
    /// When the newest answer was given.
    last_answer: Time,
    /// When the newest decision expires, until a record says whether it was carried out.
    untold: Option<Time>,
    decisions: u64,
    guard: Guarded,
    /// The quality of a flow that learns, from its first record on.
    quality: Option<Box<Quality>>,
    /// Compares its path with its model's training range, if the model has one, from its first
    /// record on.
    watch: Option<Box<PathWatch>>,
    /// Does Cubic control it while its path is outside that range?
    pub requires_range: bool,
    /// Does Cubic control it, while its policy decides without effect?
    pub is_shadow: bool,
    /// The property of its path that was outside the range with the newest record, for which Cubic
    /// controls it.
    left: Option<Outside>,
    /// `left`, as last logged.
    logged: Option<Outside>,
    /// Decisions that the flow carried out while its path was outside.
    outside: u64,
    /// Decisions that the flow carried out and that changed window or rate by the most that its
    /// model can.
    at_bound: u64,
    /// Its learner has diverged, and Cubic controls the flow for a while.
    stands_by: bool,
    /// The divergence began with the newest record.
    has_diverged: bool,
    /// The number of divergences under this policy.
    divergences: u64,
    /// Its learner has ended for good. Its policy keeps what it had learned.
    has_ended_learning: bool,
    /// The network's name for its path; empty if the network does not report it.
    path: String,
    /// The network's newest report of its path, and when it came.
    path_view: NetworkView,
    path_seen: Time,
    /// The time of the newest report of the network that the flow has looked at.
    last_report: Time,
    /// The flow should learn, but the limit on learners was reached.
    pub is_refused: bool,
    /// The class of its destination.
    pub class: Class,
    /// The version of the saved state from which its learner started.
    pub started_from: Option<Version>,
}

impl Flow {
    /// A new flow. Without a policy a tuner sets its parameters.
    ///
    /// # Errors
    /// One line, if its policy cannot be made.
    pub fn new(
        open: &Open,
        served: Option<Arc<PolicySpec>>,
        learned: Option<&Experience>,
    ) -> Result<Flow> {
        let flow = Flow::without_policy(open);
        let driver = match served {
            Some(served) => Driver::of(served, &flow.setup, learned)?,
            None => Driver::Tuner(Vec::new(), Vec::new()),
        };
        Ok(Flow { driver, ..flow })
    }

    /// A new flow for which no policy decides.
    pub fn without_policy(open: &Open) -> Flow {
        let mss = Bytes::new(open.mss.into());
        // No two flows draw the same random numbers. Flows of two agents may have the same number,
        // because each agent counts from 0.
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
            path_view: NetworkView::default(),
            path_seen: Time::ZERO,
            last_report: Time::ZERO,
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

    /// The earliest time of its next request, from the newest answer.
    pub fn next_query(&self) -> Time {
        self.next_query
    }

    /// When the newest answer was given.
    pub fn last_answer(&self) -> Time {
        self.last_answer
    }

    /// Predicts when its first acknowledgement from `from` on comes, by its newest records.
    pub fn acknowledged(&self, from: Time) -> Time {
        let (last, apart) = (self.last.now(), self.apart.as_nanos().max(1));
        last + self.apart * from.since(last).as_nanos().div_ceil(apart).max(1)
    }

    /// Does its policy's clock decide without a request?
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

    /// The name and digest of its policy's model.
    pub fn model_id(&self) -> Option<&str> {
        self.driver.served().map(PolicySpec::model_id)
    }

    /// The number of gradient steps of its policy, those before this flow included. Rax starts
    /// again at 0 when it diverges.
    pub fn experience(&self) -> u64 {
        self.driver.carried().map_or(0, FlowPolicy::updates)
    }

    /// What other flows may start from, if the flow is good.
    pub fn offer(&self) -> Option<Offer> {
        let at = self.last.now();
        let quality = self.quality.as_deref().filter(|_| !self.in_fallback())?;
        Some(Offer {
            flow: self.number(),
            experience: self.experience(),
            score: quality.score(at)?,
            at,
        })
    }

    /// Its policy, if that learns.
    pub fn learns(&self) -> Option<&PolicySpec> {
        self.driver.served().filter(|served| served.is_learning())
    }

    /// Its policy and what that has learned; `None` if it does not learn.
    pub fn learned(&self) -> Option<(&PolicySpec, Vec<u8>)> {
        let (served, carried) = self.driver.served().zip(self.driver.carried())?;
        Some((served, served.learned(carried)?))
    }

    /// Lets this thread take its policy's gradient steps.
    pub fn step_elsewhere(&mut self, thread: Option<&SyncSender<Step>>) {
        if let (Driver::Policy(_, carried), Some(thread)) = (&mut self.driver, thread) {
            carried.step_on_thread(thread);
        }
    }

    /// Has its learner ended for good since the last call?
    pub fn stops_learning(&mut self) -> bool {
        let carried = self.driver.carried();
        carried.is_some_and(FlowPolicy::has_ended_learning)
            && !std::mem::replace(&mut self.has_ended_learning, true)
    }

    /// Takes a record. Returns whether the flow waits for an answer.
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
            // Another controller has set the flow's first window.
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
        // The flow may have sent a request while a clock's answer was given. It has to find that
        // answer before another one replaces it.
        self.answered_through < self.last_query && self.last_answer <= record.now()
    }

    /// Finds out whether the newest answer was carried out, and tells the policy if it was not.
    ///
    /// At each acknowledgement a program looks for an answer just before it reports the
    /// acknowledgement, so the first record after the newest answer tells. A record of several
    /// acknowledgements tells for the last of them. At a timeout no program looks. With the record
    /// at which the guard returns the flow, the program looked while Cubic still had the flow. With
    /// the record at which the guard takes the flow, the answer may have been carried out, but the
    /// learner leaves that transition out.
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

    /// Tells its policy that the newest answer was not carried out.
    fn refuse(&mut self) {
        if let Driver::Policy(_, FlowPolicy::Net(decider)) = &mut self.driver {
            decider.policy_mut().on_refused();
        }
    }

    /// Takes the network's newest report about its path, once.
    pub fn on_network(&mut self, paths: &Paths) {
        let Some(reported_at) = (paths.reported_at()).filter(|at| *at > self.last_report) else {
            return;
        };
        self.last_report = reported_at;
        let Some(path) = paths.of(self.local.ip(), self.remote.ip()) else {
            return;
        };
        if self.path != path.name {
            self.path.clone_from(&path.name);
        }
        (self.path_view, self.path_seen) = (path.view, reported_at);
        if let Driver::Policy(_, FlowPolicy::Net(decider)) = &mut self.driver {
            decider.on_network(reported_at, &path.view);
        }
    }

    /// The training range of its model.
    fn range(&self) -> Option<TrainingRange> {
        self.driver.served().and_then(PolicySpec::range)
    }

    /// Logs that Cubic controls it because of its path, or that its policy controls it again.
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

    /// How often its learner has diverged since its policy took the flow.
    pub fn divergences(&self) -> u64 {
        self.divergences
    }

    /// Is it time to decide without a new acknowledgement?
    pub fn is_due(&self, now: Time) -> bool {
        let is_due = match self.driver.carried() {
            Some(FlowPolicy::Net(decider)) => decider.is_due(now),
            Some(FlowPolicy::Rax(_)) | None => false,
        };
        is_due && self.last.has(Record::STEERABLE) && !self.is_silent(now)
    }

    /// Has it sent no record for long? Then it may have ended.
    pub fn is_silent(&self, now: Time) -> bool {
        now.since(self.last.now()) >= SILENT_AFTER
    }

    /// Its OPEN message and the guard's last verdict.
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

    /// Writes an answer for the flow, and decides first if it is time. `read` is the time of its
    /// newest record.
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
        // The guard, and `on_record`, take later requests as not yet answered.
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

    /// Returns the answer, and whether it is a new decision.
    fn decide(
        &mut self,
        tunables: &[Param],
        now: Time,
        read: Time,
        shadow: Option<&mut Shadow>,
    ) -> (ActionSlot, bool) {
        // No acknowledgement has found the previous answer, which this one replaces.
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
                let sent = if shadow.is_some() {
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
                    None => ActionSlot::of(sent, tunables),
                    Some(_) => ActionSlot::leave(),
                };
                (slot, decider.due(), is_decision)
            }
            Driver::Policy(_, FlowPolicy::Rax(_)) if self.left.is_some() => {
                (ActionSlot::leave(), now + NOBODYS_PATIENCE, false)
            }
            // Rax has decided with the record that is the request. After a divergence it leaves the
            // flow to Cubic for a while.
            Driver::Policy(_, FlowPolicy::Rax(rax)) => match (rax.cwnd(now), shadow) {
                (None, _) => (ActionSlot::leave(), now + NOBODYS_PATIENCE, false),
                (Some(_), Some(_)) => (ActionSlot::default(), now, true),
                (Some(cwnd), None) => (ActionSlot::of_cwnd(cwnd), now, true),
            },
            // Each answer repeats all settings, so that none is lost.
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
        // A clock may have decided as of a time before the newest request. Its decision answers
        // that request too.
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

    /// Sets parameters of the base controller and sends them to the program. They stay set. Returns
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

    /// Sets parameters of the base controller, which the program gets with its next request.
    /// Returns whether a tuner sets this flow's parameters.
    pub fn tune(&mut self, settings: &[(&str, f64)]) -> bool {
        self.driver.tune(settings)
    }

    /// Makes a policy for this flow. Returns `None` if the flow keeps its present policy: a learner
    /// of the same model and spec.
    ///
    /// # Errors
    /// One line, if the policy cannot be made.
    pub fn policy_of(
        &self,
        served: Arc<PolicySpec>,
        learned: Option<&Experience>,
    ) -> Result<Option<Driver>> {
        // The present learner has learned more than the saved one.
        if served.is_learning() && self.driver.is_of(&served) {
            return Ok(None);
        }
        Driver::of(served, &self.setup, learned).map(Some)
    }

    /// Replaces the policy. The flow's observations stay if both policies observe the same
    /// features. Its count of decisions goes on if both are the same model.
    pub fn take_policy(&mut self, mut next: Driver) {
        // The newest answer was the previous policy's.
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
            // The new policy does not see the flow's history, which is the previous policy's. The
            // network has told it nothing yet.
            _ => {
                (self.driver, self.before, self.divergences) = (next, None, 0);
                self.last_report = Time::ZERO;
            }
        }
    }

    /// Does the flow carry out what its policy decides? In a shadow, outside a required range, and
    /// while the guard has the flow, Cubic controls it instead.
    fn is_carried_out(&self) -> bool {
        !self.is_shadow && self.left.is_none() && !self.in_fallback()
    }

    /// Is the flow in fallback? A verdict may have found no room in the ring, so the newer one of
    /// verdict and record counts.
    pub fn in_fallback(&self) -> bool {
        match self.last.now_ns >= self.guard.at_ns {
            true => self.last.has(Record::TRIPPED),
            false => self.guard.reason != 0,
        }
    }
}

/// The guard's last verdict.
#[derive(Clone, Copy, Debug, Default)]
struct Guarded {
    reason: u32,
    trips: u32,
    at_ns: u64,
}

/// What a connection had counted before it chose this controller. The first acknowledgement of a
/// new connection covers at most its SYN and its first window.
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

/// The destination of a flow.
pub fn remote(open: &Open) -> IpAddr {
    address(open.remote_address)
}

fn address(octets: [u8; 16]) -> IpAddr {
    Ipv6Addr::from(octets).to_canonical()
}

#[cfg(test)]
pub mod tests;
