//! Simulations of good and bad policies under the guard, for the example and for tests/guard.rs.

use std::sync::{Arc, Mutex};

use headway_cc::{
    CongestionControl, Control, Duration, Feedback, Need, NetworkView, Probe, Registry, Rto,
    Scheme, Selection, Sent, Setup, Stamp, Stream, Tag, Time, schemes,
};
use headway_policy::schemes::PolicySpec;
use headway_policy::{ActionSpec, Answer, Interval, Learned, Limits, Policy};
use headway_scenario::{Scenario, TraceSpec, TraceStore};
use headway_sim::{Options, Simulation};
use serde_json::{Value, json};

static WATCHED: Scheme = Scheme::unlisted(
    "watched",
    &[Need::RateSample, Need::Pacing, Need::PerPacket],
);
/// Any error.
pub type Error = Box<dyn std::error::Error>;

/// The results of a run's flows.
#[derive(Debug, Default)]
pub struct Seen {
    /// The trips, each with `flow`, `at` in seconds, `reason`, `why`.
    pub trips: Vec<Value>,
    /// The returns to the policy, each with `flow`, `at`.
    pub returns: Vec<Value>,
    /// Per flow, every 10 ms: bytes delivered, and the smoothed RTT.
    pub samples: Vec<Vec<(Time, u64, Duration)>>,
}

impl Seen {
    /// The rate in Mbit/s and the mean smoothed RTT in ms of a flow between two times.
    pub fn between(&self, flow: usize, from: Time, until: Time) -> Value {
        let all = &self.samples[flow];
        let index = |time: Time| all.partition_point(|(t, ..)| *t <= time);
        let delivered = |i: usize| i.checked_sub(1).map_or(0, |i| all[i].1);
        let (first, last) = (index(from), index(until));
        let bits = (delivered(last) - delivered(first)) as f64 * 8.0;
        let rtts = all[first..last].iter().map(|(.., rtt)| rtt.as_secs_f64());
        let rtt = rtts.sum::<f64>() / (last - first).max(1) as f64;
        json!({"mbps": bits / until.since(from).as_secs_f64() / 1e6, "rtt_ms": rtt * 1e3})
    }
}

/// Records the trips and returns of a controller.
#[derive(Debug)]
struct Watched {
    within: Box<dyn CongestionControl>,
    seen: Arc<Mutex<Seen>>,
    flow: usize,
    guard: (f64, f64),
}

#[derive(Default)]
struct Said(Vec<(&'static str, f64)>);

impl Probe for Said {
    fn value(&mut self, name: &'static str, value: f64) {
        self.0.push((name, value));
    }
}

impl Watched {
    fn new(within: Box<dyn CongestionControl>, seen: &Arc<Mutex<Seen>>) -> Watched {
        let mut all = seen.lock().expect("no panic");
        all.samples.push(Vec::new());
        Watched {
            within,
            flow: all.samples.len() - 1,
            seen: Arc::clone(seen),
            guard: (0.0, 0.0),
        }
    }

    fn look(&mut self, now: Time, why: Value) {
        let mut said = Said::default();
        self.within.probe(&mut said);
        let of = |name: &str| said.0.iter().find(|(n, _)| *n == name).map_or(0.0, |v| v.1);
        let guard = (of("guard_trips"), of("guard_reason"));
        let before = std::mem::replace(&mut self.guard, guard);
        let mut seen = self.seen.lock().expect("no panic");
        let at = now.as_nanos() as f64 / 1e9;
        if guard.0 > before.0 {
            let reason = headway_fixed::Reason::of(guard.1 as u32).map_or("", |r| r.name());
            let cubic = of("guard_cubic_packets");
            let trip =
                json!({"flow": self.flow, "at": at, "reason": reason, "why": why, "cubic": cubic});
            seen.trips.push(trip);
        } else if guard.1 == 0.0 && before.1 > 0.0 {
            seen.returns.push(json!({"flow": self.flow, "at": at}));
        }
    }
}

impl CongestionControl for Watched {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.within.on_sent(sent)
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.within.on_feedback(feedback);
        let rtt = feedback.rtt_stats;
        let why = json!({
            "cwnd": self.within.control().cwnd.as_f64() / 1500.0,
            "in_flight": feedback.in_flight.as_f64() / 1500.0,
            "rtt_ms": rtt.smoothed.as_secs_f64() * 1e3,
            "min_ms": rtt.min.as_secs_f64() * 1e3,
            "lost": feedback.counters.lost.get() / 1500,
        });
        self.look(feedback.now, why);
        let mut seen = self.seen.lock().expect("no panic");
        let line = &mut seen.samples[self.flow];
        let is_new =
            |last: &(Time, u64, Duration)| feedback.now.since(last.0) >= Duration::from_millis(10);
        if line.last().is_none_or(is_new) {
            let delivered = feedback.counters.delivered.get();
            line.push((feedback.now, delivered, rtt.smoothed));
        }
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.within.on_rto(rto);
        self.look(rto.now, json!("timeout"));
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

    fn probe(&self, probe: &mut dyn Probe) {
        self.within.probe(probe);
    }
}

/// A bad policy.
#[derive(Debug)]
enum Bad {
    /// A random answer; all are equally likely.
    Noise(Stream),
    /// Always the answer that lowers the window or rate most, or raises it most.
    Always(bool),
}

/// Gives a bad answer to each request.
#[derive(Debug)]
struct BadPolicy {
    bad: Bad,
    action: ActionSpec,
}

impl Policy for BadPolicy {
    fn decide(&mut self, _: &[f32], _: &Interval) -> Option<Answer> {
        let share = match &mut self.bad {
            Bad::Noise(stream) => stream.uniform(),
            Bad::Always(up) => f64::from(u8::from(*up)),
        };
        let answer = match &self.action {
            ActionSpec::Continuous { limit, .. } => ((2.0 * share - 1.0) * limit) as f32,
            ActionSpec::Discrete { choices, .. } => {
                let mut order: Vec<usize> = (0..choices.len()).collect();
                order.sort_by(|a, b| choices[*a].total_cmp(&choices[*b]));
                order[((share * choices.len() as f64) as usize).min(choices.len() - 1)] as f32
            }
            other => unreachable!("no scheme here has {other:?}"),
        };
        Some(answer.into())
    }
}

/// All schemes.
pub fn registry() -> Registry {
    let mut registry = Registry::new(schemes::SCHEMES);
    registry.add(headway_policy::schemes::SCHEMES);
    registry
}

/// A scheme, or `owl/noise` for a bad policy in its place, with or without the guard.
fn selection(name: &str, is_guarded: bool, seen: Arc<Mutex<Seen>>) -> Result<Selection, Error> {
    let Some((scheme, bad)) = name.split_once('/') else {
        let guard = if is_guarded { ":guard=on" } else { "" };
        let inner = registry().select(&format!("{name}{guard}"))?;
        return Ok(WATCHED.built_by(move |setup| Box::new(Watched::new(inner.build(setup), &seen))));
    };
    let bad = bad.to_owned();
    match bad.as_str() {
        "frozen" => return selection(&format!("{scheme}:latency=10s"), is_guarded, seen),
        "slow" => return selection(&format!("{scheme}:latency=1s"), is_guarded, seen),
        "noise" | "up" | "down" => {}
        _ => return Err(format!("{name}: bad policies are noise, up, down, frozen, slow").into()),
    }
    let agent = Arc::new(
        PolicySpec::read(scheme)?
            .agent()
            .cloned()
            .ok_or("it has no agent")?,
    );
    let latency = Duration::from_micros(26);
    Ok(WATCHED.built_by(move |setup: &Setup| {
        let bad = match bad.as_str() {
            "up" => Bad::Always(true),
            "down" => Bad::Always(false),
            _ => Bad::Noise(setup.stream("noise")),
        };
        let policy = BadPolicy {
            action: agent.action.clone(),
            bad,
        };
        let learned = Learned::new(Arc::clone(&agent), setup, policy, latency);
        let mut learned = learned.expect("a shipped agent");
        if is_guarded {
            learned = learned.guarded(Limits::default());
        }
        Box::new(Watched::new(Box::new(learned), &seen))
    }))
}

/// Runs a scenario for this many seconds with a scheme, or `owl/noise`, in each flow.
///
/// # Errors
/// One line.
pub fn run(
    scenario: &str,
    name: &str,
    is_guarded: bool,
    seed: u64,
    seconds: u64,
) -> Result<Seen, Error> {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let selection = selection(name, is_guarded, Arc::clone(&seen))?;
    let store = TraceStore::new([]);
    let traces = |spec: &TraceSpec| store.load_spec(spec).map_err(|e| e.to_string());
    let options = Options {
        duration: Duration::from_secs(seconds),
        warmup: Duration::ZERO,
        seed,
        grid: None,
    };
    let network = Scenario::load(scenario)?.draw(seed);
    Simulation::new(&network, &selection, &registry(), &traces, options)?.finish()?;
    Ok(std::mem::take(&mut *seen.lock().expect("no panic")))
}
