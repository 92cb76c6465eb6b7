//! What Rax learns, seed by seed: throughput and loss every 10 s, and over the last 300.
//!
//! `cargo run --release -p headway-policy --example rax -- SCENARIO FIRST-LAST SECONDS [SPEC.json] [every]`
//! A spec is a `RaxSpec` as JSON, what is left out is the default; `every` prints what goes on inside that often.

use std::time::Instant;

use headway_cc::{
    CongestionControl, Control, Duration, Feedback, Need, Probe, Registry, Rto, Scheme, Selection,
    Sent, Tag, Time, schemes,
};
use headway_policy::schemes::{Rax, RaxSpec};
use headway_scenario::{Scenario, TraceSpec, TraceStore};
use headway_sim::{Options, Simulation};

static TUNED: Scheme = Scheme::unlisted("rax-tuned", &[Need::PerPacket]);

type Error = Box<dyn std::error::Error>;

/// Prints a controller's values from time to time.
#[derive(Debug)]
struct Watched {
    within: Rax,
    every: Duration,
    next: Time,
}

struct Line(String);

impl Probe for Line {
    fn value(&mut self, name: &'static str, value: f64) {
        self.0 += &format!(" {name} {value:.4}");
    }
}

impl CongestionControl for Watched {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.within.on_sent(sent)
    }
    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.within.on_feedback(feedback);
        if feedback.now >= self.next {
            self.next = feedback.now + self.every;
            let mut line = Line(format!("    {:8.2} s", feedback.now.as_secs_f64()));
            self.probe(&mut line);
            println!("{}", line.0);
        }
    }
    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.within.on_rto(rto);
    }
    fn control(&self) -> Control {
        self.within.control()
    }
    fn owns_recovery(&self) -> bool {
        true
    }
    fn probe(&self, probe: &mut dyn Probe) {
        self.within.probe(probe);
    }
}

fn selection(spec: RaxSpec, every: Option<f64>) -> Selection {
    TUNED.built_by(move |setup| {
        let within = Rax::new(setup, spec.clone()).expect("a spec in range");
        let every = every.map_or(Duration::MAX, Duration::from_secs_f64);
        let next = if every == Duration::MAX { Time::NEVER } else { Time::ZERO };
        Box::new(Watched { within, every, next })
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[expect(clippy::disallowed_methods, reason = "it measures time")]
fn run(scenario: &str, seed: u64, seconds: u64, chosen: &str, every: Option<f64>) -> Result<(), Error> {
    let registry = Registry::new(schemes::SCHEMES);
    let selection = match chosen.strip_prefix("scheme=") {
        Some(scheme) => registry.select(scheme)?,
        None => selection(serde_json::from_str(chosen)?, every),
    };
    let store = TraceStore::new([]);
    let traces = |spec: &TraceSpec| store.load_spec(spec).map_err(|e| e.to_string());
    let options = Options {
        duration: Duration::from_secs(seconds),
        warmup: Duration::ZERO,
        seed,
        grid: Some(Duration::from_secs(1)),
    };
    let network = Scenario::load(scenario)?.draw(seed);
    let start = Instant::now();
    let outcome = Simulation::new(&network, &selection, &registry, &traces, options)?.finish()?;
    let took = start.elapsed().as_secs_f64();
    let half = seconds as usize / 2;
    for flow in &outcome.series {
        let rates = &flow.series.throughput_mbps;
        let losses: Vec<f64> = flow.series.loss.iter().map(|l| l.unwrap_or(0.0)).collect();
        let bins = |values: &[f64], digits: usize| {
            let line: Vec<String> = (values.chunks(10)).map(|c| format!("{:.digits$}", mean(c))).collect();
            line.join(" ")
        };
        println!(
            "seed {seed} flow {:2}: last half {:.2} Mbit/s loss {:.4}; all {:.2} loss {:.4}; {took:.1} s",
            flow.flow,
            mean(&rates[half..]),
            mean(&losses[half..]),
            mean(rates),
            mean(&losses),
        );
        if std::env::var_os("BINS").is_some() {
            println!("  Mbit/s {}", bins(rates, 1));
            println!("  loss %  {}", bins(&losses.iter().map(|l| 100.0 * l).collect::<Vec<_>>(), 1));
        }
    }
    Ok(())
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "rax SCENARIO FIRST-LAST SECONDS [SPEC.json|-] [every]";
    let [scenario, seeds, seconds, rest @ ..] = arguments.as_slice() else {
        return Err(usage.into());
    };
    let (first, last) = seeds.split_once('-').ok_or(usage)?;
    let chosen = rest.first().map_or("{}", String::as_str);
    let every = rest.get(1).map(|t| t.parse()).transpose()?;
    for seed in first.parse::<u64>()?..=last.parse()? {
        run(scenario, seed, seconds.parse()?, chosen, every)?;
    }
    Ok(())
}
