//! What the guard does of policies that are good and bad: a line of JSON for each run (docs/guard.md).
//!
//! `guarded trips SCENARIO,... SCHEME,... RUNS`: schemes as they come, each flow's trips.
//! `guarded bad SCENARIO,... POLICY,... RUNS`: bad policies in the place of a scheme's (`owl/noise`, `aurora/up`), what
//! the flow delivers in the 5 s after the first trip, and what plain Cubic does then.

use std::sync::{Arc, Mutex};

use headway_cc::{
    CongestionControl, Control, Duration, Feedback, Need, NetworkView, Probe, Registry, Rto,
    Scheme, Selection, Sent, Setup, Stamp, Stream, Tag, Time, schemes,
};
use headway_policy::schemes::Served;
use headway_policy::{ActionSpec, Interval, Learned, Limits, Policy};
use headway_scenario::{Scenario, TraceSpec, TraceStore};
use headway_sim::{Options, Simulation};
use serde_json::{Value, json};

static WATCHED: Scheme = Scheme::unlisted(
    "watched",
    &[Need::RateSample, Need::Pacing, Need::PerPacket],
);
const SECONDS: u64 = 60;

type Error = Box<dyn std::error::Error>;

/// What a run's flows did.
#[derive(Debug, Default)]
struct Seen {
    trips: Vec<Value>,
    returns: Vec<Value>,
    /// Per flow: bytes delivered, every 10 ms.
    delivered: Vec<Vec<(Time, u64)>>,
}

/// Writes down what becomes of a controller.
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
        all.delivered.push(Vec::new());
        Watched {
            within,
            flow: all.delivered.len() - 1,
            seen: Arc::clone(seen),
            guard: (0.0, 0.0),
        }
    }

    fn look(&mut self, now: Time, why: &str) {
        let mut said = Said::default();
        self.within.probe(&mut said);
        let of = |name: &str| said.0.iter().find(|(n, _)| *n == name).map_or(0.0, |v| v.1);
        let guard = (of("guard_trips"), of("guard_reason"));
        let before = std::mem::replace(&mut self.guard, guard);
        let mut seen = self.seen.lock().expect("no panic");
        let at = now.as_nanos() as f64 / 1e9;
        if guard.0 > before.0 {
            let said: serde_json::Map<_, _> = (said.0.iter())
                .map(|(name, value)| ((*name).to_owned(), (*value).into()))
                .collect();
            seen.trips.push(
                json!({"flow": self.flow, "at": at, "reason": guard.1, "why": why, "said": said}),
            );
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
        let why = format!(
            "cwnd {:.1} rtt {:?} min {:?} delivered {} lost {}",
            self.within.control().cwnd.as_f64() / 1500.0,
            rtt.smoothed,
            rtt.min,
            feedback.counters.delivered.get() / 1500,
            feedback.counters.lost.get() / 1500,
        );
        self.look(feedback.now, &why);
        let mut seen = self.seen.lock().expect("no panic");
        let line = &mut seen.delivered[self.flow];
        let is_new = |last: &(Time, u64)| feedback.now.since(last.0) >= Duration::from_millis(10);
        if line.last().is_none_or(is_new) {
            line.push((feedback.now, feedback.counters.delivered.get()));
        }
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.within.on_rto(rto);
        self.look(rto.now, "time-out");
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

/// A policy that nobody should run.
#[derive(Debug)]
enum Bad {
    /// Any answer, each as likely.
    Noise(Stream),
    /// Always the one that goes down furthest, or up.
    Always(bool),
}

/// Gives a bad answer to each question.
#[derive(Debug)]
struct BadPolicy {
    bad: Bad,
    action: ActionSpec,
}

impl Policy for BadPolicy {
    fn decide(&mut self, _: &[f32], _: &Interval) -> Option<f32> {
        let share = match &mut self.bad {
            Bad::Noise(stream) => stream.uniform(),
            Bad::Always(up) => f64::from(u8::from(*up)),
        };
        Some(match &self.action {
            ActionSpec::Continuous { limit, .. } => ((2.0 * share - 1.0) * limit) as f32,
            ActionSpec::Discrete { choices, .. } => {
                let mut order: Vec<usize> = (0..choices.len()).collect();
                order.sort_by(|a, b| choices[*a].total_cmp(&choices[*b]));
                order[((share * choices.len() as f64) as usize).min(choices.len() - 1)] as f32
            }
            other => unreachable!("no scheme here has {other:?}"),
        })
    }
}

fn registry() -> Registry {
    let mut registry = Registry::new(schemes::SCHEMES);
    registry.add(headway_policy::schemes::SCHEMES);
    registry
}

/// A scheme, or `owl/noise` for a bad policy in its place.
fn selection(name: &str, seen: Arc<Mutex<Seen>>) -> Result<Selection, Error> {
    let Some((scheme, bad)) = name.split_once('/') else {
        let inner = registry().select(name)?;
        return Ok(WATCHED.built_by(move |setup| Box::new(Watched::new(inner.build(setup), &seen))));
    };
    let latency = match bad {
        "frozen" => Some("10s"),
        "slow" => Some("1s"),
        _ => None,
    };
    if let Some(latency) = latency {
        return selection(&format!("{scheme}:latency={latency}:guard=on"), seen);
    }
    let agent = Arc::new(Served::read(scheme)?.agent().clone());
    let bad = bad.to_owned();
    let latency = Duration::from_micros(26);
    Ok(WATCHED.built_by(move |setup: &Setup| {
        let bad = match bad.as_str() {
            "up" => Bad::Always(true),
            "down" => Bad::Always(false),
            _ => Bad::Noise(setup.stream("noise")),
        };
        let action = agent.action.clone();
        let learned = Learned::new(
            Arc::clone(&agent),
            setup,
            BadPolicy { bad, action },
            latency,
        );
        let learned = learned.expect("a shipped agent").guarded(Limits::default());
        Box::new(Watched::new(Box::new(learned), &seen))
    }))
}

fn run(scenario: &str, scheme: &str, seed: u64) -> Result<Seen, Error> {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let selection = selection(scheme, Arc::clone(&seen))?;
    let store = TraceStore::new([]);
    let traces = |spec: &TraceSpec| store.load_spec(spec).map_err(|e| e.to_string());
    let options = Options {
        duration: Duration::from_secs(SECONDS),
        warmup: Duration::ZERO,
        seed,
        grid: None,
    };
    let network = Scenario::load(scenario)?.draw(seed);
    Simulation::new(&network, &selection, &registry(), &traces, options)?.finish()?;
    Ok(std::mem::take(&mut *seen.lock().expect("no panic")))
}

/// Bytes delivered between two times.
fn delivered(line: &[(Time, u64)], from: Time, until: Time) -> u64 {
    let at = |time: Time| {
        let before = line.partition_point(|(t, _)| *t <= time);
        before.checked_sub(1).map_or(0, |i| line[i].1)
    };
    at(until).saturating_sub(at(from))
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mode, scenarios, names, runs] = arguments.as_slice() else {
        return Err("guarded trips|bad SCENARIO,... NAME,... RUNS".into());
    };
    let runs: u64 = runs.parse()?;
    for scenario in scenarios.split(',') {
        for name in names.split(',') {
            for seed in 1..=runs {
                let mut seen = run(scenario, name, seed)?;
                let mut line = json!({"scenario": scenario, "name": name, "seed": seed});
                line["trips"] = std::mem::take(&mut seen.trips).into();
                line["returns"] = std::mem::take(&mut seen.returns).into();
                let first = line["trips"].get(0).and_then(|trip| trip["at"].as_f64());
                if let (Some(at), "bad") = (first, mode.as_str()) {
                    let from = Time::from_nanos((at * 1e9) as u64);
                    let until = from + Duration::from_secs(5);
                    let cubic = run(scenario, "cubic", seed)?;
                    line["after"] = delivered(&seen.delivered[0], from, until).into();
                    line["cubic"] = delivered(&cubic.delivered[0], from, until).into();
                } else if mode == "bad" {
                    let (from, until) = (Time::ZERO, Time::from_nanos(SECONDS * 1_000_000_000));
                    let cubic = run(scenario, "cubic", seed)?;
                    line["after"] = delivered(&seen.delivered[0], from, until).into();
                    line["cubic"] = delivered(&cubic.delivered[0], from, until).into();
                }
                println!("{line}");
            }
        }
    }
    Ok(())
}
