//! A flow of the fake kernel: the base controller, with the program that reports about it and takes
//! actions, and the guard between both. At an acknowledgement it does what `bpf/flow.h` and
//! `bpf/actions.h` do.
//!
//! It differs from the programs as follows:
//!
//! - A record never has `RWND_LIMITED`: no receiver's window limits a simulated flow. So a window
//!   that is not filled is one without data.
//! - Losses that wait for room do not fill a window, as `lost_out > retrans_out` does in
//!   `steer_cwnd()`: a transport reports all that is in flight at once.
//! - Each acknowledgement finds an answer before it is reported. In `headway_owl` those that reach
//!   no `cong_avoid` are reported with the next one, and look for an answer then.
//! - `headway_window`'s window is not paced in recovery, only after an idle period. With that
//!   pacing one of 16 takeovers in recovery had 0.81 of Cubic's throughput here, and without it
//!   each had 0.92 or more. The cause was not found; no live flow has shown it.
//! - The rate that only follows that window while nothing is paced (200%) is not there: it sizes
//!   TSO packets and queues of the host, of which a simulated flow has none.
//! - Cubic and BBR are those of crates/cc. PRR is the transport's: a flow that Cubic takes during
//!   recovery has none until the next, and its window may be ssthresh at once, where the programs
//!   begin with the packets in flight. An undo gives such a flow nothing back (`undo_most`).
//! - Losses that the guard ignores are hidden from the simulated Cubic, so its window grows on to
//!   ssthresh. In the programs ssthresh becomes the window.
//! - Only the programs answer marks while losses are repaired (`answer_marks_in_recovery()`): the
//!   simulated transport reports no mark then.
//! - A full queue of this host, which enters `TCP_CA_CWR` too, is not simulated.
//! - After a timeout a paced flow keeps its rate and its window. `headway_rate` leaves the kernel's
//!   window of one packet until the next acknowledgement.
//! - It has no loopback, and no socket that took another controller before.

use headway_cc::schemes::cubic;
use headway_cc::{
    Base, Bytes, Congestion, CongestionControl, Control, Duration, Feedback, NetworkView, Param,
    PathModel, Probe, Rto, RttStats, Sent, Setup, Stamp, Tag, Time,
};
use headway_fixed::{Int8, Limits, RateAgent, Verdict};
use headway_policy::{Action, AgentSpec, BaseController, BaseSpec, FlowGuard, Record, SpecError};
use zerocopy::transmute_ref;

use crate::abi::{
    ASK_AGAIN, ActionSlot, LATEST_DUE, LEARNER, LEAVE, LOOK_AGAIN, SET_CWND, SettingValues,
};
use crate::fake::FlowSlot;
use crate::tcp_sock::{TCP_CA_CWR, TCP_CA_RECOVERY};
use crate::window::{Window, kernels_cubic};
use crate::{FakeKernel, TcpSock};

/// The time from an acknowledgement's arrival, which the record has, until the program looks for an
/// answer.
const PROCESSING: Duration = Duration::from_micros(5);

/// A flow of the fake kernel. Any host of congestion controllers can run it. The agent is separate.
#[derive(Debug)]
pub struct Datapath {
    kernel: FakeKernel,
    setup: Setup,
    spec: BaseSpec,
    base: BaseController,
    guard: FlowGuard,
    /// The Cubic of a fallback from a rate or from BBR.
    cubic: Option<Box<cubic::Cubic>>,
    sock: TcpSock,
    rtt: RttStats,
    latest: Record,
    place: Option<FlowSlot>,
    /// The sequence number of the last action that was found.
    sequence: u32,
    /// The state of the policy that the program evaluates itself.
    rate_agent: Option<RateAgent>,
    /// Does the policy control the flow, and not Cubic?
    is_steered: bool,
    // The fields below are those of `struct flow` in flow.h.
    acks: u32,
    due: Time,
    reported: Time,
    asked: Time,
    is_asked: bool,
    is_open: bool,
    is_own: bool,
    is_new: bool,
    in_fallback: bool,
    is_left: bool,
    is_learners: bool,
    /// Has the guard begun to judge the flow?
    is_judged: bool,
    /// Does the policy react to ECN marks, and not Cubic? It does for a rate, and for a window that
    /// is the policy's in every state.
    answers_marks: bool,
    /// The time of the newest mark to which it reacted.
    marked: Time,
}

impl Datapath {
    /// A new flow of `headway_owl`, `headway_rate` or `headway_bbr`, with the controller that
    /// `spec` steers.
    ///
    /// # Errors
    /// [`SpecError`] if there is no such controller.
    pub fn new(
        kernel: &FakeKernel,
        spec: &AgentSpec,
        setup: &Setup,
    ) -> Result<Datapath, SpecError> {
        let base = BaseController::new(&spec.base, &spec.action, setup)?;
        Ok(Datapath::over(kernel, spec.base.clone(), base, setup))
    }

    /// A new flow of `headway_window`, whose window is the policy's in every state.
    pub fn of_window(kernel: &FakeKernel, setup: &Setup) -> Datapath {
        let spec = BaseSpec::Scheme {
            name: "cubic".to_owned(),
            grows: false,
        };
        let base = BaseController::Base(Box::new(Window::new(setup)));
        let mut flow = Datapath::over(kernel, spec, base, setup);
        flow.answers_marks = true;
        flow
    }

    fn over(kernel: &FakeKernel, spec: BaseSpec, base: BaseController, setup: &Setup) -> Datapath {
        let settings = kernel.settings();
        let mut flow = Datapath {
            kernel: kernel.clone(),
            setup: *setup,
            guard: FlowGuard::new(setup, settings.limits),
            cubic: None,
            spec,
            answers_marks: matches!(base, BaseController::Rate(_)),
            marked: Time::ZERO,
            base,
            sock: TcpSock::new(setup.mss),
            rtt: RttStats::default(),
            latest: Record::default(),
            place: None,
            sequence: 0,
            rate_agent: None,
            is_steered: true,
            acks: 0,
            due: Time::ZERO,
            reported: Time::ZERO,
            asked: Time::ZERO,
            is_asked: false,
            is_open: false,
            is_own: false,
            is_new: true,
            in_fallback: settings.is_shadow != 0,
            is_left: false,
            is_learners: false,
            is_judged: false,
        };
        // Before an agent serves the flow, BBR runs if it is the base controller, and Cubic
        // otherwise.
        if flow.in_fallback || !matches!(flow.base, BaseController::Tunable(_)) {
            flow.go_alone((setup.initial_cwnd, Bytes::MAX));
        }
        flow
    }

    /// The flow's number; `None` without a slot.
    pub fn flow(&self) -> Option<u32> {
        self.place.map(|place| place.number)
    }

    /// The controller's model of the path.
    pub fn model(&self) -> Option<PathModel> {
        match self.cubic {
            Some(_) => None,
            None => self.base.model(),
        }
    }

    /// The guard, which says who controls the flow, and why.
    pub fn guard(&self) -> &headway_fixed::Guard {
        self.guard.guard()
    }

    /// Cubic takes over with this window and ssthresh.
    fn go_alone(&mut self, start: (Bytes, Bytes)) {
        self.is_steered = false;
        match &mut self.base {
            BaseController::Base(scheme) => scheme.go_alone(start.0, start.1),
            BaseController::Rate(_) | BaseController::Tunable(_) => {
                let mut cubic = kernels_cubic(&self.setup);
                cubic.go_alone(start.0, start.1);
                self.cubic = Some(Box::new(cubic));
            }
        }
    }

    /// `give_to_cubic()`, and `fill_window()` where a rate has paced the flow.
    fn give_to_cubic(&mut self, record: &Record) {
        let mut control = self.control();
        let is_paced = !matches!(self.base, BaseController::Base(_));
        let is_prrs = [TCP_CA_CWR, TCP_CA_RECOVERY].contains(&self.sock.icsk_ca_state);
        if is_paced && !is_prrs {
            let mss = self.setup.mss;
            let flying = mss * u64::from(self.sock.in_flight());
            control.cwnd = control.cwnd.min(flying.max(self.setup.initial_cwnd));
        }
        let start = self.guard.restart(record, &control);
        self.go_alone(start);
    }

    /// `answer_marks()`: leaves seven tenths of the policy's window, or of its rate.
    fn answer_marks(&mut self, now: Time) {
        let least = self.limits(&self.kernel.settings()).min_cwnd;
        match &mut self.base {
            BaseController::Rate(control) => {
                control.set(headway_cc::Rate::from_bps(control.rate().as_bps() * 7 / 10));
            }
            BaseController::Base(scheme) => {
                let mss = self.setup.mss;
                let packets = scheme.control().cwnd.get() / mss.get() * 7 / 10;
                let cwnd = mss * packets.max(least.into());
                scheme.set_cwnd(now, self.rtt.smoothed, cwnd);
            }
            BaseController::Tunable(_) => return,
        }
        self.marked = now;
    }

    /// A policy takes over. A rate that has sent nothing yet starts at its setting.
    fn give_to_policy(&mut self) {
        let cubic = self.cubic.take().filter(|_| !self.is_new);
        let left = cubic.map(|cubic| cubic.control().cwnd);
        self.base.return_to_policy(&self.spec, left, &self.rtt);
        self.is_steered = true;
    }

    /// The controller of the flow: the base controller, or the Cubic of a fallback.
    fn controller(&self) -> &dyn CongestionControl {
        match &self.cubic {
            Some(cubic) => cubic.as_ref(),
            None => self.base.controller(),
        }
    }

    /// Calls the base controller, and the Cubic of a fallback if there is one.
    fn tell(&mut self, mut news: impl FnMut(&mut dyn CongestionControl)) {
        news(self.base.controller_mut());
        if let Some(cubic) = &mut self.cubic {
            news(cubic.as_mut());
        }
    }

    /// The policy that the program evaluates itself, if there is one.
    fn own_policy(&self) -> Option<Int8> {
        match self.base {
            BaseController::Rate(_) => self.kernel.own_policy(),
            BaseController::Base(_) | BaseController::Tunable(_) => None,
        }
    }

    /// `open_guard()`
    fn open_guard(&mut self, now: Time) {
        let ssthresh = match (&self.cubic, &self.base) {
            (Some(cubic), _) => cubic.ssthresh(),
            (None, BaseController::Base(scheme)) => scheme.ssthresh(),
            (None, BaseController::Rate(_) | BaseController::Tunable(_)) => Bytes::MAX,
        };
        (self.guard).replace_policy(now, self.control().cwnd, ssthresh);
    }

    /// `enter()`
    fn enter(&mut self, now: Time) -> bool {
        if !self.is_judged {
            self.is_judged = true;
            self.open_guard(now);
        }
        self.place = self.kernel.take_slot();
        let Some(place) = self.place else {
            self.due = now + LOOK_AGAIN;
            return false;
        };
        self.due = Time::ZERO;
        self.is_open = self.kernel.open(place, &self.setup);
        true
    }

    /// `is_served()`
    fn is_served(&mut self, now: Time, is_own: bool) -> bool {
        if self.is_own && !is_own {
            self.is_own = false;
            self.guard.forget();
        }
        if self.place.is_some() {
            return true;
        }
        let is_reducing = self.sock.icsk_ca_state >= TCP_CA_CWR;
        let is_due = now >= self.due && now < self.kernel.served_until();
        if is_due && !is_reducing && self.enter(now) {
            return true;
        }
        self.is_own = is_own;
        self.is_new &= is_own;
        is_own
    }

    /// `find_action()`
    fn find_action(&mut self, now: Time) -> Option<ActionSlot> {
        let place = self.place?;
        let action = self.kernel.action(place.slot, self.sequence)?;
        self.sequence = action.sequence;
        if action.flow != place.number {
            return None;
        }
        let now = now + PROCESSING;
        self.is_asked = false;
        self.is_left = action.kind == LEAVE;
        self.due = Time::from_nanos(action.due_ns).min(now + LATEST_DUE);
        let is_learners = action.flags & LEARNER != 0;
        if is_learners != self.is_learners {
            self.is_learners = is_learners;
            self.guard.acquit();
        }
        self.guard.set_limits(self.limits(&self.kernel.settings()));
        let [decided, answered, expires] =
            [action.decided_ns, action.answered_ns, action.expires_ns].map(Time::from_nanos);
        let is_allowed = self.guard.answer(decided, answered, now);
        (is_allowed && now < expires && !self.in_fallback).then_some(action)
    }

    fn act(&mut self, now: Time, slot: &ActionSlot) {
        if !self.base.may_act() {
            return;
        }
        let mut actions = slot.actions(self.tunables());
        if slot.kind == SET_CWND {
            let packets = self.control().cwnd.get() / self.setup.mss.get();
            let grows = slot.values[0] as f64 - packets as f64;
            // A decision from before a mark does not raise the window that the mark has left.
            if grows > 0.0 && slot.decided_ns < self.marked.as_nanos() {
                return;
            }
            actions.push(Action::AddCwnd(grows));
        }
        for action in actions {
            // steer_cwnd(): a window that is not filled does not grow.
            let grows = matches!(action, Action::AddCwnd(n) if n > 0.0)
                || matches!(action, Action::ScaleCwnd(factor) if factor > 1.0);
            if grows && !self.sock.is_cwnd_limited {
                continue;
            }
            let (mss, guard) = (self.setup.mss, Some(&mut self.guard));
            self.base.act(now, mss, &self.rtt, action, guard);
        }
    }

    fn tunables(&self) -> &'static [Param] {
        match &self.base {
            BaseController::Tunable(scheme) => scheme.tunables(),
            BaseController::Rate(_) | BaseController::Base(_) => &[],
        }
    }

    /// `limits_of()`
    fn limits(&self, settings: &SettingValues) -> Limits {
        match self.is_learners {
            true => settings.learner_limits,
            false => settings.limits,
        }
    }

    /// `report()`, and what each program does with its result.
    fn report(&mut self, now: Time, acks: u32, own_policy: Option<&Int8>) {
        let settings = self.kernel.settings();
        // The program's own policy leaves no flow to Cubic. The agent's earlier policy may have,
        // and is not asked again.
        self.is_left &= own_policy.is_none();
        let is_steerable = own_policy.is_none() && self.base.may_act();
        self.acks += acks;
        self.sock.allow(&self.control(), self.setup.mss);
        let mut record = self.sock.record(TcpSock::now_ns(now), acks);
        record = record.with_model(self.model());
        let may_ask = !self.is_asked || now.since(self.asked) > ASK_AGAIN;
        let asks = is_steerable && now >= self.due && may_ask;
        if is_steerable {
            record.flags |= Record::STEERABLE;
        }
        if asks {
            self.is_asked = true;
            self.asked = now;
            self.guard.ask(now);
        }
        self.judge(&record, &settings);
        if self.in_fallback {
            record.flags |= Record::TRIPPED;
        }
        self.latest = record;
        if let Some(place) = self.place {
            self.say(place, &mut record, asks, &settings);
        }
        if let Some(policy) = own_policy {
            self.decide(&record, policy);
        }
        self.is_new = false;
    }

    /// `verdict_of()`: who controls the flow.
    fn judge(&mut self, record: &Record, settings: &SettingValues) {
        let is_left = self.is_left || settings.is_shadow != 0;
        let is_unjudged = is_left || (self.in_fallback && self.guard().is_fine());
        let verdict = match is_unjudged {
            true => self.leave(is_left, record.now()),
            false => {
                self.guard.set_limits(self.limits(settings));
                self.guard.judge(record)
            }
        };
        match verdict {
            Verdict::Trip => {
                self.in_fallback = true;
                self.give_to_cubic(record);
            }
            Verdict::Resume => {
                self.in_fallback = false;
                self.give_to_policy();
            }
            Verdict::Policy | Verdict::Fallback => return,
        }
        if !is_unjudged {
            let (reason, trips) = (self.guard().reason() as u32, self.guard().trips());
            self.kernel.judged(self.place, record.now(), reason, trips);
        }
    }

    /// `leave()`
    fn leave(&mut self, is_left: bool, now: Time) -> Verdict {
        if is_left == self.in_fallback {
            return Verdict::Fallback;
        }
        self.guard.forget();
        if is_left {
            return Verdict::Trip;
        }
        self.open_guard(now);
        Verdict::Resume
    }

    /// Sends a record to the agent, unless it has to wait for more acknowledgements.
    fn say(&mut self, place: FlowSlot, record: &mut Record, asks: bool, settings: &SettingValues) {
        let now = record.now();
        let interval = Duration::from_micros(settings.report_interval_us.into());
        if record.acks > 0 && !asks && now.since(self.reported) < interval {
            return;
        }
        if record.acks > 0 && !asks && self.kernel.holds_back() {
            return;
        }
        if asks {
            record.flags |= Record::ASKS;
        }
        record.acks = if record.acks > 0 { self.acks } else { 0 };
        self.reported = now;
        if !self.is_open {
            self.is_open = self.kernel.open(place, &self.setup);
        }
        let is_sent = self.kernel.report(place, *record);
        if is_sent {
            self.acks -= record.acks;
        }
        match (is_sent, asks) {
            (true, true) => self.kernel.wake(),
            // The next acknowledgement asks again. The guard counts from this one.
            (false, true) => self.is_asked = false,
            (_, false) => {}
        }
    }

    /// `decide()` of headway_rate: the program's own policy takes a record, and may change the
    /// rate.
    fn decide(&mut self, record: &Record, policy: &Int8) {
        let now_ns = record.now_ns;
        let begins = self.is_new || self.rate_agent.is_none();
        let agent = match &mut self.rate_agent {
            Some(agent) if !begins => agent,
            agent => agent.insert(RateAgent::new(policy, now_ns)),
        };
        let BaseController::Rate(control) = &mut self.base else {
            return;
        };
        let decisions = agent.decisions();
        agent.set_rate(control.rate().as_bps() / 8);
        let rate = agent.record(policy, transmute_ref!(record));
        if agent.decisions() == decisions {
            return;
        }
        let now = record.now();
        self.guard.ask(now);
        if self.guard.answer(now, now, now) && !self.in_fallback {
            let wanted = headway_cc::Rate::from_bps(rate.saturating_mul(8));
            control.set(self.guard.rate(wanted));
        }
    }
}

impl CongestionControl for Datapath {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.sock.on_sent(sent.retransmission);
        let mut tag = Tag::NONE;
        self.tell(|controller| tag = controller.on_sent(sent));
        tag
    }

    /// Applies a waiting action first, then reports the flow's state. An answer to that comes
    /// later.
    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        let now = feedback.now;
        self.rtt = feedback.rtt_stats;
        self.sock.on_feedback(feedback, self.setup.mss);
        let own_policy = self.own_policy();
        let is_served = self.is_served(now, own_policy.is_some());
        // In shadow mode the flow keeps its window.
        let has_policy = is_served && self.kernel.settings().is_shadow == 0;
        if has_policy && !self.in_fallback && !self.is_steered {
            self.give_to_policy();
        } else if !is_served && self.is_steered && matches!(self.base, BaseController::Rate(_)) {
            // The program's own policy is gone.
            let record = self.latest;
            self.give_to_cubic(&record);
        }
        let for_cubic = self.guard.feedback_for_cubic(feedback);
        self.tell(|controller| controller.on_feedback(&for_cubic));
        let policy_decides = is_served && self.is_steered && !self.in_fallback;
        if policy_decides && self.answers_marks && feedback.congestion == Some(Congestion::Ecn) {
            self.answer_marks(now);
        }
        if is_served {
            if let Some(action) = self.find_action(now) {
                self.act(now, &action);
            }
            self.report(now, 1, own_policy.as_ref());
        }
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.tell(|controller| controller.on_rto(rto));
        self.sock.on_rto();
        let own_policy = self.own_policy();
        if self.place.is_some() || (self.is_own && own_policy.is_some()) {
            self.report(rto.now, 0, own_policy.as_ref());
        }
    }

    fn on_idle(&mut self, now: Time, idle: Duration) {
        self.tell(|controller| controller.on_idle(now, idle));
    }

    fn on_network(&mut self, now: Time, view: &NetworkView) {
        self.tell(|controller| controller.on_network(now, view));
    }

    fn next_timer(&self) -> Time {
        self.base.controller().next_timer()
    }

    fn on_timer(&mut self, now: Time) {
        self.base.controller_mut().on_timer(now);
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
        self.guard.probe(probe);
    }
}

impl Drop for Datapath {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.kernel.close(place, self.latest);
        }
    }
}
