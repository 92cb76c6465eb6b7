//! Runs simulated flows with the agent as one more timer, and with faults of that agent.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::{Arc, MutexGuard};

use headway_cc::{Duration, Need, Registry, Scheme, Selection, Setup, Time, schemes};
use headway_fixed::Reason;
use headway_kernel::abi::Message;
use headway_kernel::{Datapath, FakeKernel};
use headway_net::Packet;
use headway_policy::schemes::PolicySpec;
use headway_policy::{AgentSpec, Record};
use headway_scenario::{Scenario, TraceSpec};
use headway_sim::{Hold, Observer, Options, Simulation};
use headwayd::Controller;
use headwayd::agent::{
    Agent, AgentOptions, Kernel, Policies, SavedStates, Shadow, Store, Wait, turn,
};

use crate::program::Program;
use crate::seen::{Seen, SharedSeen, Watched};

/// A request wakes a sleeping agent after this time.
const WAKES_IN: Duration = Duration::from_micros(30);
/// The time between two looks of an agent that is awake.
const LOOKS_IN: Duration = Duration::from_micros(20);

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// This many milliseconds after the beginning.
pub fn at(millis: u64) -> Time {
    Time::ZERO + ms(millis)
}

/// A fault of an agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    None,
    /// The process is gone from this time on.
    Killed(Time),
    /// It does not run between these two times.
    Stopped(Time, Time),
    /// It runs for 5 ms of each second from this time on.
    Slow(Time),
    /// It reads each message this long after it was sent, from this time on.
    Late(Time, Duration),
}

impl Fault {
    /// The time at which an agent runs that would run at `wanted` without the fault.
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

    /// How long a message waits until the agent reads it.
    fn late(self, now: Time) -> Duration {
        match self {
            Fault::Late(from, late) if now >= from => late,
            _ => Duration::ZERO,
        }
    }
}

/// Records what arrives. Pauses the run when a request wakes the agent.
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

static SERVED: Scheme = Scheme::unlisted("served", &[Need::RateSample, Need::Pacing]);

/// The BDP is 33 packets, and the queue holds 60.
pub const LINK: &str = "rate = \"20Mbps\", delay = \"10ms\", queue = \"60pkt\"";
/// Packets that the path and the queue hold together.
pub const HOLDS: f64 = 93.0;

fn simulation(
    (link, changes): (&str, &str),
    flows: usize,
    selection: &Selection,
    seconds: u64,
    seed: u64,
    watch: Watch,
) -> Simulation<Watch> {
    let text = format!(
        "schema = 1\nname = \"agent\"\nseconds = {seconds}\ntransport = \"linux\"\n\
         bottleneck = {{ {link} }}\nat = [{changes}]\nflow = [{{ count = {flows} }}]\n\
         varies = {{ host_jitter = \"100us\" }}\n"
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

/// Cubic as in the kernel.
pub const CUBIC: &str = "cubic:hystart=classic";

/// A run of one flow without an agent, with a scheme of the simulator.
pub fn plain(scheme: &'static str, link: &str, seconds: u64, seed: u64) -> Seen {
    let seen = SharedSeen::default();
    let told = Arc::clone(&seen);
    let selection = SERVED.built_by(move |setup| {
        let registry = Registry::new(schemes::SCHEMES);
        let inner = registry.select(scheme).expect(scheme).build(setup);
        Box::new(Watched::new(inner, setup, &told))
    });
    let watch = Watch {
        seen: Arc::clone(&seen),
        kernel: FakeKernel::new(0),
    };
    let run = simulation((link, ""), 1, &selection, seconds, seed, watch);
    run.finish().expect("a run");
    std::mem::take(&mut *seen.lock().expect("no panic"))
}

/// A case to simulate.
#[derive(Clone, Debug)]
pub struct Case {
    /// `None` if a tuner sets BBR's windows.
    pub policy: Option<String>,
    /// `None`: the controller that fits the policy.
    pub controller: Option<Controller>,
    pub link: &'static str,
    /// The link's changes, as in a scenario's `at`.
    pub changes: &'static str,
    pub flows: usize,
    pub slots: u16,
    pub ring_bytes: usize,
    pub seconds: u64,
    pub seed: u64,
    pub options: AgentOptions,
    /// How many flows learn at once.
    pub learners: usize,
    pub state: Option<PathBuf>,
    pub fault: Fault,
}

impl Case {
    pub fn of(policy: &str) -> Case {
        Case {
            policy: Some(policy.to_owned()),
            controller: None,
            link: LINK,
            changes: "",
            flows: 1,
            slots: FakeKernel::SLOTS,
            ring_bytes: 4 << 20,
            seconds: 60,
            seed: 1,
            options: AgentOptions::default(),
            learners: 64,
            state: None,
            fault: Fault::None,
        }
    }
}

/// A run under way.
pub struct World {
    pub kernel: FakeKernel,
    pub agent: RefCell<Agent<Program>>,
    simulation: Simulation<Watch>,
    seen: SharedSeen,
    pub fault: Fault,
    /// When the agent looks next.
    next: Time,
    /// How often it has looked so far.
    pub looks: u64,
    /// A message that a late agent has not read yet.
    unread: Option<Box<[u8]>>,
}

/// The time of a flow's record in a message.
fn sent(message: &[u8]) -> Time {
    match Message::read(message) {
        Ok(Message::Report(report) | Message::Close(report)) => report.record.now(),
        _ => Time::ZERO,
    }
}

/// Records when a flow sent a request.
fn note(seen: &SharedSeen, message: &[u8]) {
    if let Ok(Message::Report(report)) = Message::read(message)
        && report.record.has(Record::ASKS)
    {
        let mut seen = seen.lock().expect("no panic");
        let asked = seen.asked.entry(report.header.flow).or_default();
        asked.push(report.record.now());
    }
}

impl World {
    pub fn new(case: &Case) -> World {
        let controller = controller_of(case);
        let spec = PolicySpec::read(case.policy.as_deref().unwrap_or("bbr-tuner-ppo"));
        let spec = spec.expect("a policy").agent().cloned();
        let kernel = FakeKernel::with_slots(case.ring_bytes, case.slots);
        let agent = RefCell::new(agent(case, &kernel, Time::ZERO));
        let seen = SharedSeen::default();
        let (told, of_flows) = (Arc::clone(&seen), kernel.clone());
        let selection = SERVED.built_by(move |setup| {
            let flow = datapath(controller, spec.as_ref(), &of_flows, setup);
            Box::new(Watched::new(Box::new(flow), setup, &told))
        });
        let watch = Watch {
            seen: Arc::clone(&seen),
            kernel: kernel.clone(),
        };
        World {
            simulation: simulation(
                (case.link, case.changes),
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

    /// Starts another agent over the program that the previous one has left.
    pub fn restart(&mut self, case: &Case) {
        let now = self.now();
        self.kernel.set_now(now);
        self.agent = RefCell::new(agent(case, &self.kernel, now));
        self.fault = Fault::None;
        self.unread = None;
        self.next = now;
    }

    /// Simulates the whole run.
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
                self.next = self.next.min(now + self.fault.late(now).max(WAKES_IN));
                self.kernel.clear_wake();
                self.simulation.release();
            } else if now >= looks {
                self.look(now);
            } else {
                return;
            }
        }
    }

    /// Runs one turn of the agent's loop.
    fn look(&mut self, now: Time) {
        self.looks += 1;
        self.kernel.set_now(now);
        let late = self.fault.late(now);
        let wait = turn(&self.agent, |most| {
            let mut count = 0;
            while count < most {
                let message = self.unread.take().or_else(|| self.kernel.next_message());
                let Some(message) = message else { break };
                if sent(&message) + late > now {
                    self.unread = Some(message);
                    break;
                }
                note(&self.seen, &message);
                self.agent.borrow_mut().on_message(&message);
                count += 1;
            }
            Ok(count)
        });
        let wait = wait.expect("messages can be read");
        let sleeps = matches!(wait, Wait::Sleep(_));
        assert_eq!(self.kernel.settings().is_awake == 0, sleeps, "{wait:?}");
        self.next = now
            + match wait {
                Wait::Look => LOOKS_IN,
                Wait::Nap(time) | Wait::Sleep(time) => time.max(LOOKS_IN),
            };
        if let Some(unread) = &self.unread {
            self.next = self.next.min(sent(unread) + late);
        }
    }

    /// `headwayd reload` with this policy.
    pub fn reload(&mut self, policy: &str) {
        self.kernel.set_now(self.now());
        let policies = Policies::read([policy]).expect("a policy");
        let agent = self.agent.get_mut();
        (agent.take_policies(Some(policies), SavedStates::default())).expect("they fit together");
        let mut next = Some(0);
        while let Some(from) = next {
            next = agent.renew(from);
        }
        self.next = self.now();
    }

    /// What `headwayd status` prints now.
    pub fn status(&self) -> serde_json::Value {
        status(&self.agent.borrow(), self.now())
    }

    /// One of the agent's counters.
    pub fn count(&self, name: &str) -> u64 {
        let counters = self.agent.borrow().counters(self.now());
        counters["counters"][name].as_u64().expect(name)
    }

    /// How often the guard tripped for a reason.
    pub fn trips(&self, reason: Reason) -> u64 {
        self.kernel.counters().trips[reason as usize]
    }
}

/// What `headwayd status` prints now.
pub fn status(agent: &Agent<Program>, now: Time) -> serde_json::Value {
    let (mut flows, mut next) = (Vec::new(), Some(0));
    while let Some(from) = next {
        let (some, goes_on) = agent.page(from, now);
        flows.extend(some);
        next = goes_on;
    }
    flows.sort_by_key(|flow| flow["flow"].as_u64());
    let mut status = agent.summary(now);
    status["flows"] = flows.into();
    status
}

fn controller_of(case: &Case) -> Controller {
    let Some(policy) = case.policy.as_deref() else {
        return Controller::Bbr;
    };
    let policies = Policies::read([policy]).expect("a policy");
    let controller = case.controller.unwrap_or(policies.controller());
    policies.check(controller, case.options).expect("it fits");
    controller
}

/// An agent that starts now.
pub fn agent(case: &Case, kernel: &FakeKernel, now: Time) -> Agent<Program> {
    let mut program = Program {
        controller: controller_of(case),
        kernel: kernel.clone(),
    };
    let policies = case.policy.as_deref();
    let policies = policies.map(|policy| Policies::read([policy]).expect("a policy"));
    match &policies {
        Some(policies) => policies.configure(&mut program, case.options),
        None => program.configure(case.options.without_policy(), None),
    }
    .expect("limits in their ranges");
    let shadow = (case.options.is_shadow).then(|| Shadow::into(None).expect("no thread"));
    let store = Store::new(case.state.clone());
    let (options, learners) = (case.options, case.learners);
    Agent::new(program, policies, shadow, store, options, learners, now)
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
