//! Simulated flows, the agent that serves them as one more timer, and what may become of that
//! agent.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use headway_cc::{
    CongestionControl, Control, Duration, Feedback, Need, NetworkView, Probe, Registry, Rto,
    Scheme, Selection, Sent, Setup, Stamp, Tag, Time, schemes,
};
use headway_fixed::{Int8, Reason};
use headway_kernel::abi::{ActionSlot, CounterValues, Message, SettingValues};
use headway_kernel::{Datapath, FakeKernel};
use headway_net::Packet;
use headway_policy::schemes::Served;
use headway_policy::{AgentSpec, Record};
use headway_scenario::{Scenario, TraceSpec};
use headway_sim::{Hold, Observer, Options, Simulation};
use headwayd::Controller;
use headwayd::agent::{Agent, Frame, Kernel, Policies, Shadow, Store, Wait};

/// The next simulation's first wake of an agent that sleeps, after the question.
const WAKES_IN: Duration = Duration::from_micros(30);
/// An agent that looks again at once needs so long for a look.
const LOOKS_IN: Duration = Duration::from_micros(20);
/// As the agent's loop: `MOST_MESSAGES` and `LONGEST_WAIT` of serve.rs.
const MOST_MESSAGES: usize = 1024;
const LONGEST_WAIT: Duration = Duration::from_millis(100);

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// So many milliseconds after the beginning.
pub fn at(millis: u64) -> Time {
    Time::ZERO + ms(millis)
}

/// What becomes of an agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    None,
    /// From then on it is gone.
    Killed(Time),
    /// It stands still from the first time to the second.
    Stopped(Time, Time),
    /// From then on it runs for 5 ms of each second.
    Slow(Time),
    /// From then on it reads each message so long after it was sent.
    Late(Time, Duration),
}

impl Fault {
    /// When it does what it would do then.
    fn delays(self, wanted: Time) -> Time {
        match self {
            Fault::Killed(from) if wanted >= from => Time::NEVER,
            Fault::Stopped(from, until) if wanted >= from => wanted.max(until),
            Fault::Slow(from) if wanted >= from => {
                let second = wanted.since(from).as_nanos() / 1_000_000_000;
                let begins = from + Duration::from_secs(second);
                match wanted.since(begins) < ms(5) && second > 0 {
                    true => wanted,
                    false => begins + Duration::from_secs(1),
                }
            }
            _ => wanted,
        }
    }
}

/// A flow's state after an acknowledgement or a time-out.
#[derive(Clone, Copy, Debug)]
pub struct State {
    pub at: Time,
    /// In packets, as the next two.
    pub cwnd: f64,
    pub ssthresh: f64,
    pub acked: f64,
    pub srtt: Duration,
    /// Whether losses are being repaired, or a time-out is.
    pub is_repairing: bool,
    /// Why it is Cubic's.
    pub reason: Reason,
    pub trips: u32,
}

/// What a run's flows did.
#[derive(Debug, Default)]
pub struct Seen {
    pub states: Vec<Vec<State>>,
    /// When how many bytes arrived at each flow's receiver.
    arrived: Vec<Vec<(Time, u64)>>,
    /// When each flow asked, as its messages say.
    pub asked: BTreeMap<u32, Vec<Time>>,
}

impl Seen {
    /// Mbit/s that came between two times, of all flows.
    pub fn mbps(&self, since: Time, until: Time) -> f64 {
        (0..self.arrived.len())
            .map(|flow| self.mbps_of(flow, since, until))
            .sum()
    }

    /// Of one flow.
    pub fn mbps_of(&self, flow: usize, since: Time, until: Time) -> f64 {
        let came = self.arrived[flow]
            .iter()
            .filter(|(at, _)| *at > since && *at <= until);
        let bytes: u64 = came.map(|(_, bytes)| bytes).sum();
        bytes as f64 * 8e-6 / until.since(since).as_secs_f64()
    }

    /// The longest time in which nothing came of a flow.
    pub fn longest_gap(&self, flow: usize, since: Time, until: Time) -> Duration {
        let came = self.arrived[flow].iter().map(|(at, _)| *at);
        let within = came.filter(|at| *at > since && *at < until).chain([until]);
        let mut before = since;
        within
            .map(|at| at.since(std::mem::replace(&mut before, at)))
            .max()
            .unwrap_or_default()
    }

    pub fn flows(&self) -> usize {
        self.arrived.len()
    }

    /// A flow's states from a time on.
    pub fn from(&self, flow: usize, since: Time) -> &[State] {
        let states = &self.states[flow];
        &states[states.partition_point(|state| state.at < since)..]
    }

    /// When the guard first took a flow, and why.
    pub fn trip(&self, flow: usize) -> Option<(Time, Reason)> {
        let tripped = self.states[flow].iter().find(|state| state.trips > 0)?;
        Some((tripped.at, tripped.reason))
    }

    /// When it first gave one back.
    pub fn returned(&self, flow: usize) -> Option<Time> {
        let (trip, _) = self.trip(flow)?;
        let back = self
            .from(flow, trip)
            .iter()
            .find(|state| state.reason == Reason::Fine);
        back.map(|state| state.at)
    }
}

pub type SharedSeen = Arc<Mutex<Seen>>;

/// A controller whose states are written down.
#[derive(Debug)]
struct Watched<C> {
    within: C,
    seen: SharedSeen,
    flow: usize,
    mss: f64,
}

/// What may have a guard.
trait Judged: CongestionControl {
    fn judged(&self) -> (Reason, u32) {
        (Reason::Fine, 0)
    }
}

impl Judged for Datapath {
    fn judged(&self) -> (Reason, u32) {
        (self.guard().reason(), self.guard().trips())
    }
}

impl CongestionControl for Boxed {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.0.on_sent(sent)
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.0.on_feedback(feedback);
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.0.on_rto(rto);
    }

    fn on_idle(&mut self, now: Time, idle: Duration) {
        self.0.on_idle(now, idle);
    }

    fn control(&self) -> Control {
        self.0.control()
    }

    fn owns_recovery(&self) -> bool {
        self.0.owns_recovery()
    }
}

/// A controller that nobody serves.
#[derive(Debug)]
struct Boxed(Box<dyn CongestionControl>);

impl Judged for Boxed {}

#[derive(Default)]
struct Ssthresh(f64);

impl Probe for Ssthresh {
    fn value(&mut self, name: &'static str, value: f64) {
        if name == "ssthresh_packets" {
            self.0 = value;
        }
    }
}

impl<C: Judged> Watched<C> {
    fn boxed(within: C, setup: &Setup, seen: &SharedSeen) -> Box<dyn CongestionControl>
    where
        C: 'static,
    {
        let mut all = seen.lock().expect("no panic");
        all.states.push(Vec::new());
        all.arrived.push(Vec::new());
        Box::new(Watched {
            within,
            seen: Arc::clone(seen),
            flow: all.states.len() - 1,
            mss: setup.mss.as_f64(),
        })
    }

    fn look(&self, now: Time, acked: f64, srtt: Duration, is_repairing: bool) {
        let mut ssthresh = Ssthresh(f64::INFINITY);
        self.within.probe(&mut ssthresh);
        let (reason, trips) = self.within.judged();
        let state = State {
            at: now,
            cwnd: self.within.control().cwnd.as_f64() / self.mss,
            ssthresh: ssthresh.0,
            acked,
            srtt,
            is_repairing,
            reason,
            trips,
        };
        self.seen.lock().expect("no panic").states[self.flow].push(state);
    }
}

impl<C: Judged> CongestionControl for Watched<C> {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.within.on_sent(sent)
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.within.on_feedback(feedback);
        let acked = feedback.acked_bytes.as_f64() / self.mss;
        let is_repairing = feedback.recovery != headway_cc::Recovery::Open;
        self.look(
            feedback.now,
            acked,
            feedback.rtt_stats.smoothed,
            is_repairing,
        );
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.within.on_rto(rto);
        self.look(rto.now, 0.0, Duration::ZERO, true);
    }

    fn on_idle(&mut self, now: Time, idle: Duration) {
        self.within.on_idle(now, idle);
    }

    fn on_network(&mut self, now: Time, view: &NetworkView) {
        self.within.on_network(now, view);
    }

    fn next_timer(&self) -> Time {
        self.within.next_timer()
    }

    fn on_timer(&mut self, now: Time) {
        self.within.on_timer(now);
    }

    fn control(&self) -> Control {
        self.within.control()
    }

    fn stamp(&self) -> Stamp {
        self.within.stamp()
    }

    fn owns_recovery(&self) -> bool {
        self.within.owns_recovery()
    }
}

/// Writes down what arrives, and stops the run where a question wakes the agent.
#[derive(Debug)]
pub struct Watch {
    seen: SharedSeen,
    kernel: FakeKernel,
}

impl Observer for Watch {
    fn on_data_arrived(&mut self, now: Time, packet: &Packet) {
        let mut seen = self.seen.lock().expect("no panic");
        seen.arrived[packet.flow as usize].push((now, packet.size().get()));
    }

    fn holds(&mut self) -> Hold {
        match self.kernel.is_woken() {
            true => Hold::Now,
            false => Hold::No,
        }
    }
}

/// The fake kernel's program, as the agent has it.
pub struct Program {
    pub controller: Controller,
    pub kernel: FakeKernel,
}

impl Kernel for Program {
    fn controller(&self) -> Controller {
        self.controller
    }

    fn name(&self) -> &str {
        self.controller.name()
    }

    fn now(&self) -> Time {
        self.kernel.now()
    }

    fn write_slot(&self, slot: u16, action: &ActionSlot) {
        self.kernel.write_slot(slot, action);
    }

    fn counters(&self) -> CounterValues {
        self.kernel.counters()
    }

    fn configure(&mut self, settings: SettingValues, own_policy: Option<&Int8>) {
        self.kernel.configure(settings, own_policy);
    }

    fn set_awake(&self, is_awake: bool) {
        self.kernel.set_awake(is_awake);
    }
}

static SERVED: Scheme = Scheme::unlisted("served", &[Need::RateSample, Need::Pacing]);

/// 20 Mbit/s and 20 ms: a BDP of 33 packets, and twice that in the queue.
pub const LINK: &str = "rate = \"20Mbps\", delay = \"10ms\", queue = \"60pkt\"";
/// Packets, both together.
pub const HOLDS: f64 = 93.0;

fn simulation(
    link: &str,
    flows: usize,
    selection: &Selection,
    seconds: u64,
    seed: u64,
    watch: Watch,
) -> Simulation<Watch> {
    let text = format!(
        "schema = 1\nname = \"agent\"\nseconds = {seconds}\ntransport = \"linux\"\nbottleneck = {{ {link} }}\n\
         flow = [{{ count = {flows} }}]\nvaries = {{ host_jitter = \"100us\" }}\n"
    );
    let scenario = Scenario::parse(&text, "agent").expect("a scenario");
    let none = |_: &TraceSpec| Err("no traces".to_owned());
    let options = Options {
        duration: Duration::from_secs(seconds),
        warmup: Duration::ZERO,
        seed,
        grid: None,
    };
    let registry = Registry::new(schemes::SCHEMES);
    let network = scenario.draw(seed);
    Simulation::observed(&network, selection, &registry, &none, options, watch).expect("a run")
}

/// The kernel's.
pub const CUBIC: &str = "cubic:hystart=classic";

/// What a kernel's scheme does alone on such a link.
pub fn plain(scheme: &'static str, link: &str, seconds: u64, seed: u64) -> Seen {
    let seen = SharedSeen::default();
    let told = Arc::clone(&seen);
    let selection = SERVED.built_by(move |setup| {
        let registry = Registry::new(schemes::SCHEMES);
        let inner = registry.select(scheme).expect(scheme).build(setup);
        Watched::boxed(Boxed(inner), setup, &told)
    });
    let watch = Watch {
        seen: Arc::clone(&seen),
        kernel: FakeKernel::new(0),
    };
    let run = simulation(link, 1, &selection, seconds, seed, watch);
    run.finish().expect("a run");
    std::mem::take(&mut *seen.lock().expect("no panic"))
}

/// What a run is made of.
#[derive(Clone, Debug)]
pub struct Case {
    pub policy: String,
    /// The one that fits the policy unless another is given.
    pub controller: Option<Controller>,
    pub link: &'static str,
    pub flows: usize,
    pub slots: u16,
    pub ring_bytes: usize,
    pub seconds: u64,
    pub seed: u64,
    pub frame: Frame,
    pub state: Option<PathBuf>,
    pub fault: Fault,
}

impl Case {
    pub fn of(policy: &str) -> Case {
        Case {
            policy: policy.to_owned(),
            controller: None,
            link: LINK,
            flows: 1,
            slots: FakeKernel::SLOTS,
            ring_bytes: 4 << 20,
            seconds: 60,
            seed: 1,
            frame: Frame::default(),
            state: None,
            fault: Fault::None,
        }
    }
}

/// A run under way.
pub struct World {
    pub kernel: FakeKernel,
    pub agent: Agent<Program>,
    simulation: Simulation<Watch>,
    seen: SharedSeen,
    pub fault: Fault,
    /// When the agent looks next.
    next: Time,
    /// How often it has looked so far.
    pub looks: u64,
    /// A message that it is too late to read yet.
    unread: Option<Box<[u8]>>,
}

/// When a flow's state was that which a message tells.
fn sent(message: &[u8]) -> Time {
    match Message::read(message) {
        Ok(Message::Report(report) | Message::Close(report)) => report.record.now(),
        _ => Time::ZERO,
    }
}

impl World {
    pub fn new(case: &Case) -> World {
        let policies = Policies::read([case.policy.as_str()]).expect("a policy");
        let spec = Served::read(&case.policy)
            .expect("a policy")
            .agent()
            .cloned();
        let controller = case.controller.unwrap_or(policies.controller());
        policies.check(controller, case.frame).expect("it fits");
        let kernel = FakeKernel::with_slots(case.ring_bytes, case.slots);
        let mut program = Program {
            controller,
            kernel: kernel.clone(),
        };
        policies.configure(&mut program, case.frame);
        let shadow = case.frame.is_shadow.then(|| Shadow::into(None));
        let store = Store::new(case.state.clone());
        let programs = vec![(program, Some(policies))];
        let agent = Agent::new(programs, shadow, store, case.frame, 64, Time::ZERO);
        let seen = SharedSeen::default();
        let (told, of_flows) = (Arc::clone(&seen), kernel.clone());
        let selection = SERVED.built_by(move |setup| {
            let flow = datapath(controller, spec.as_ref(), &of_flows, setup);
            Watched::boxed(flow, setup, &told)
        });
        let watch = Watch {
            seen: Arc::clone(&seen),
            kernel: kernel.clone(),
        };
        World {
            simulation: simulation(
                case.link,
                case.flows,
                &selection,
                case.seconds,
                case.seed,
                watch,
            ),
            kernel,
            agent,
            seen,
            fault: case.fault,
            next: Time::ZERO,
            looks: 0,
            unread: None,
        }
    }

    /// As the case says, to its end.
    pub fn finished(case: &Case) -> World {
        let mut world = World::new(case);
        world.run_until(Time::ZERO + Duration::from_secs(case.seconds));
        world
    }

    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("no panic")
    }

    pub fn now(&self) -> Time {
        self.simulation.now()
    }

    pub fn run_until(&mut self, end: Time) {
        loop {
            let looks = self.fault.delays(self.next);
            self.simulation.run_until(looks.min(end)).expect("a run");
            let now = self.simulation.now();
            if !self.simulation.held().is_empty() {
                self.next = self.next.min(now + self.late(now).max(WAKES_IN));
                self.kernel.hear_wake();
                self.simulation.release();
            } else if now >= looks {
                self.look(now);
            } else {
                return;
            }
        }
    }

    /// One turn of the agent's loop (`serve.rs`).
    fn look(&mut self, now: Time) {
        self.looks += 1;
        self.kernel.set_now(now);
        let is_late = !self.late(now).is_zero();
        self.kernel.set_awake(!is_late);
        let mut wait = self.read(now);
        if matches!(wait, Wait::Sleep(_)) {
            self.kernel.set_awake(false);
            wait = self.read(now);
        }
        self.next = now
            + match wait {
                _ if is_late => LONGEST_WAIT,
                Wait::Look => LOOKS_IN,
                Wait::Nap(time) | Wait::Sleep(time) => time.clamp(LOOKS_IN, LONGEST_WAIT),
            };
        if let Some(unread) = &self.unread {
            self.next = self.next.min(sent(unread) + self.late(now));
        }
    }

    fn read(&mut self, now: Time) -> Wait {
        for _ in 0..MOST_MESSAGES {
            let message = self.unread.take().or_else(|| self.kernel.next_message());
            let Some(message) = message else { break };
            if sent(&message) + self.late(now) > now {
                self.unread = Some(message);
                break;
            }
            self.note(&message);
            self.agent.on_message(0, &message);
        }
        self.agent.on_timers(now)
    }

    /// How long messages wait by now.
    fn late(&self, now: Time) -> Duration {
        match self.fault {
            Fault::Late(from, late) if now >= from => late,
            _ => Duration::ZERO,
        }
    }

    /// Writes down when flows asked.
    fn note(&self, message: &[u8]) {
        if let Ok(Message::Report(report)) = Message::read(message)
            && report.record.has(Record::ASKS)
        {
            let mut seen = self.seen();
            let asked = seen.asked.entry(report.header.flow).or_default();
            asked.push(report.record.now());
        }
    }

    /// Other policies take over, as at `headwayd reload`.
    pub fn reload(&mut self, policy: &str) {
        self.kernel.set_now(self.now());
        let policies = Policies::read([policy]).expect("a policy");
        self.agent.reload(vec![Some(policies)]).expect("they fit");
        self.kernel.set_awake(true);
        self.next = self.now();
    }

    /// What `headwayd status` says now.
    pub fn status(&self) -> serde_json::Value {
        self.agent.status(self.now())
    }

    /// A number that it counts.
    pub fn count(&self, name: &str) -> u64 {
        let counters = self.agent.counters(self.now());
        counters["counters"][name].as_u64().expect(name)
    }

    /// How often the guard took a flow for a reason.
    pub fn trips(&self, reason: Reason) -> u64 {
        self.kernel.counters().trips[reason as usize]
    }
}

/// A flow of a controller's program.
fn datapath(
    controller: Controller,
    spec: Option<&AgentSpec>,
    kernel: &FakeKernel,
    setup: &Setup,
) -> Datapath {
    match (controller, spec) {
        (Controller::Window, _) | (_, None) => Datapath::of_window(kernel, setup),
        (_, Some(spec)) => Datapath::new(kernel, spec, setup).expect("a controller"),
    }
}
