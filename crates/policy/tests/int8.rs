//! Compares the kernel's agent in whole numbers with this crate's in floating point: from the same
//! records both decide at the same times and see the same, to a step of an input.

use std::sync::{Arc, Mutex};

use headway_cc::{
    CongestionControl, Control, Duration, Feedback, Need, Rate, Registry, Rto, Scheme, Sent, Setup,
    Tag, schemes,
};
use headway_fixed::vectors::Draw;
use headway_fixed::{FEATURES, Int8, Mlp, RateAgent};
use headway_net::trace::Trace;
use headway_policy::int8::compile;
use headway_policy::{
    AgentSpec, Clock, Monitor, NeededStats, Observation, RateControl, Record, RecordBuilder,
};
use headway_scenario::{Scenario, TraceSpec};
use headway_sim::{Options, Simulation};
use zerocopy::transmute_ref;

static SCHEME: Scheme = Scheme::unlisted("tap", &[Need::RateSample, Need::Pacing]);

/// Aurora's agent with six intervals. Loss and packets have their whole range, so that every step
/// occurs.
const AGENT: &str = r#"
clock = { kind = "rtt", n = 0.5, estimator = "mean" }
action = { kind = "continuous", limit = 4, effect = { does = "scale-rate", delta = 0.1 } }
base = { kind = "rate", initial_mbps = 2, min_mbps = 0.1, max_mbps = 1000 }
[observation]
history = 6
features = [
  { name = "rtt_slope", scale = 2, clip = [-2, 2] },
  { name = "rtt_ratio", log = true, offset = 0.6931472, scale = 5, clip = [-1, 5] },
  { name = "send_ratio", log = true, offset = 0.6931472, scale = 3, clip = [-2, 5] },
  { name = "loss", scale = 5, clip = [0, 2] },
  { name = "delivered_packets", log = true, offset = 3, scale = 0.3, clip = [-1, 2] },
]
"#;

fn agent() -> AgentSpec {
    let table: toml::Table = AGENT.parse().expect("TOML");
    AgentSpec::read(table).expect("a spec")
}

/// What the kernel's program cannot do is refused in one line that says what it can do.
#[test]
fn agents_the_kernel_program_cannot_run_are_refused() {
    assert!(compile(&agent(), Mlp::default()).is_ok());
    for (old, new, says) in [
        ("\"mean\"", "\"ewma\"", "clock must be kind rtt"),
        ("n = 0.5", "n = 16", "n below 16"),
        (
            "history = 6",
            "history = 5",
            "the last 6 intervals' rtt_slope",
        ),
        ("\"loss\"", "\"ce_share\"", "loss (log = false)"),
        (
            "\"send_ratio\", log = true",
            "\"send_ratio\"",
            "send_ratio (log = true)",
        ),
        ("limit = 4", "limit = 16", "a limit below 16"),
        ("delta = 0.1", "delta = 1", "a delta below 1"),
        (
            "scale = 2,",
            "scale = -2,",
            "feature 'rtt_slope': scale must be above 0",
        ),
        (
            "clip = [-2, 2]",
            "clip = [-1e5, 1e5]",
            "feature 'rtt_slope'",
        ),
    ] {
        assert!(AGENT.contains(old), "{old}");
        let table: toml::Table = AGENT.replacen(old, new, 1).parse().expect("TOML");
        let spec = AgentSpec::read(table).expect("a spec");
        let error = compile(&spec, Mlp::default()).expect_err(new).to_string();
        assert!(error.contains(says) && !error.contains('\n'), "{error}");
    }
}

/// The comparison of a feature: the largest difference in steps of an input, and the inputs that
/// occurred.
#[derive(Clone, Copy, Debug)]
struct Found {
    worst: f64,
    least: u8,
    largest: u8,
}

type Finds = Arc<Mutex<([Found; FEATURES], usize)>>;

/// Sends at the rate of the kernel's agent, and checks what the agent sees.
#[derive(Debug)]
struct Tap {
    policy: Int8,
    ours: RateAgent,
    spec: AgentSpec,
    monitor: Monitor,
    clock: Clock,
    observation: Observation,
    reporter: RecordBuilder,
    base: RateControl,
    finds: Finds,
}

impl Tap {
    fn new(setup: &Setup, seed: u64, finds: &Finds) -> Tap {
        let spec = agent();
        let policy = compile(&spec, Draw::new(seed).net()).expect("a policy");
        let ours = RateAgent::new(&policy, setup.start.as_nanos());
        Tap {
            base: RateControl::new(setup.mss, Rate::from_bps(ours.rate() * 8)),
            monitor: Monitor::new(setup.start, NeededStats::default()),
            clock: Clock::new(&spec.clock, setup.start),
            observation: Observation::new(&spec.observation).expect("a spec"),
            reporter: RecordBuilder::new(setup.mss),
            finds: Arc::clone(finds),
            policy,
            ours,
            spec,
        }
    }

    fn take(&mut self, record: &Record) {
        let before = self.ours.decisions();
        let rate = self.ours.record(&self.policy, transmute_ref!(record));
        self.base.set(Rate::from_bps(rate * 8));
        let mut decisions = 0;
        // A timer of the host would have fired first.
        let (timer, now) = (self.clock.next_timer(self.monitor.has_news()), record.now());
        if timer < now {
            decisions += 1;
            self.monitor_closes(timer);
        }
        self.monitor.on_record(record);
        self.clock.on_record(record);
        if self.clock.is_due(now, self.monitor.has_news()) {
            decisions += 1;
            self.monitor_closes(now);
        }
        assert_eq!(self.ours.decisions() - before, decisions, "at {now:?}");
        // The times are equal to the microsecond, since whole numbers have the mean RTT in 1/256
        // us.
        let apart = (self.ours.due_ns()).abs_diff(self.clock.due().as_nanos());
        assert!(
            apart < 1000 || self.clock.due() <= now,
            "due {apart} ns apart"
        );
        if decisions > 0 {
            self.compare();
        }
    }

    fn monitor_closes(&mut self, now: headway_cc::Time) {
        self.observation.push(&self.monitor.close(now));
        self.clock.restart(now);
    }

    fn compare(&self) {
        let newest = (self.observation.values().last_chunk::<FEATURES>()).expect("features");
        let ours = self.ours.inputs().last_chunk::<FEATURES>();
        let (finds, decisions) = &mut *self.finds.lock().unwrap();
        *decisions += 1;
        let features = ours.expect("features").iter().zip(newest);
        let used = &self.spec.observation.features;
        for ((found, used), (ours, value)) in finds.iter_mut().zip(used).zip(features) {
            let [low, high] = used.clip;
            let theirs = (f64::from(*value) - low) * 255.0 / (high - low);
            let off = (f64::from(*ours) - theirs).abs();
            assert!(off <= 1.0, "{}: input {ours}, must be {theirs}", used.name);
            found.worst = found.worst.max(off);
            found.least = found.least.min(*ours);
            found.largest = found.largest.max(*ours);
        }
    }
}

impl CongestionControl for Tap {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.reporter.on_sent(sent);
        Tag::NONE
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.base.on_feedback(feedback);
        let record = self.reporter.on_feedback(feedback, &self.base.control());
        self.take(&record);
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        let record = self.reporter.on_rto(rto, &self.base.control());
        self.take(&record);
    }

    fn control(&self) -> Control {
        self.base.control()
    }

    fn owns_recovery(&self) -> bool {
        true
    }
}

fn watch(seed: u64, network: &str, finds: &Finds) {
    let finds = Arc::clone(finds);
    let selection = SCHEME.built_by(move |setup| Box::new(Tap::new(setup, seed, &finds)));
    let text = format!("schema = 1\nname = \"int8\"\nseconds = 20\n{network}");
    let scenario = Scenario::parse(&text, "int8").expect("a scenario");
    let registry = Registry::new(schemes::SCHEMES);
    // The rates have bursts and outages, as a cellular link has.
    let rates: Vec<f64> = (0..200)
        .map(|i| f64::from((i * 37) % 11) * f64::from(i % 13).min(3.0))
        .collect();
    let trace = Arc::new(Trace::from_rates(&rates, Duration::from_millis(100)).expect("rates"));
    let traces = move |_: &TraceSpec| -> Result<Arc<Trace>, String> { Ok(Arc::clone(&trace)) };
    let options = Options {
        duration: Duration::from_secs(20),
        warmup: Duration::ZERO,
        seed: 1,
        grid: None,
    };
    let simulation = Simulation::new(&scenario.draw(1), &selection, &registry, &traces, options);
    simulation.expect("a run").finish().expect("a run");
}

#[test]
fn the_kernels_agent_sees_the_same_as_the_monitor() {
    let nothing = Found {
        worst: 0.0,
        least: u8::MAX,
        largest: 0,
    };
    let finds: Finds = Arc::new(Mutex::new(([nothing; FEATURES], 0)));
    let link = |rest: &str| format!("bottleneck = {{ delay = \"13.7ms\", {rest} }}\n");
    for network in [
        link("rate = \"17.3Mbps\", queue = \"1bdp\""),
        link("rate = \"0.9Mbps\", queue = \"20pkt\""),
        link("rate = \"170Mbps\", queue = \"2bdp\""),
        link("rate = \"17.3Mbps\", queue = \"1bdp\", loss = 0.02"),
        link("trace = \"cell\", queue = \"100pkt\""),
        format!(
            "transport = \"linux\"\n{}",
            link("rate = \"5Mbps\", queue = \"2bdp\"")
        ),
        format!(
            "{}at = [{{ time = \"5s\", loss = 1 }}, {{ time = \"9s\", loss = 0 }}]\n",
            link("rate = \"8Mbps\", queue = \"1bdp\"")
        ),
    ] {
        for seed in 0..6 {
            watch(seed, &network, &finds);
        }
    }
    let (finds, decisions) = *finds.lock().unwrap();
    assert!(decisions > 20_000, "{decisions} decisions");
    println!("{decisions} decisions: {finds:?}");
    for (found, used) in finds.iter().zip(agent().observation.features) {
        let span = found.largest - found.least;
        assert!(span > 100, "{}: {found:?} hardly moved", used.name);
    }
}
