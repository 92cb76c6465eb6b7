//! Shows what Rax learns with each seed: throughput and loss every 10 s, over all and over the last
//! half.
//!
//! `cargo run --release -p headway-policy --example rax -- SCENARIO FIRST-LAST SECONDS [SPEC [RUNS [EVERY]]]`
//!
//! SPEC is a `RaxSpec` as JSON (missing keys have defaults), or `scheme=cubic` for another scheme.
//! With several RUNS in a row each flow continues with what the first flow of the run before has
//! learned. A line every EVERY seconds shows the learner's state.

#[path = "rax/runs.rs"]
mod runs;

use std::sync::{Arc, Mutex};
use std::time::Instant;

use headway_cc::{
    CongestionControl, Control, Duration, Feedback, Probe, Registry, Rto, Selection, Sent, Tag,
    Time,
};
use headway_policy::schemes::{Rax, RaxSpec};
use runs::{Error, TUNED, mean, percent_lost, play, registry, tens};

/// What was learned, how often a network diverged, and how many actions were dropped.
type Kept = Arc<Mutex<Vec<(String, f64, f64)>>>;

/// Prints a controller's state, and keeps what it learned.
#[derive(Debug)]
struct Watched {
    within: Rax,
    every: Duration,
    next: Time,
    kept: Kept,
}

#[derive(Default)]
struct Values(Vec<(&'static str, f64)>);

impl Probe for Values {
    fn value(&mut self, name: &'static str, value: f64) {
        self.0.push((name, value));
    }
}

impl Watched {
    fn values(&self) -> Vec<(&'static str, f64)> {
        let mut values = Values::default();
        self.within.probe(&mut values);
        values.0
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
            let values = self.values().into_iter();
            let text: Vec<String> = values.map(|(n, v)| format!("{n} {v:.4}")).collect();
            println!("  {:8.2} s {}", feedback.now.as_secs_f64(), text.join(" "));
        }
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.within.on_rto(rto);
    }

    fn control(&self) -> Control {
        self.within.control()
    }

    fn owns_recovery(&self) -> bool {
        self.within.owns_recovery()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let values = self.values();
        let of = |name| values.iter().find(|(n, _)| *n == name).map_or(0.0, |v| v.1);
        if let Ok(mut kept) = self.kept.lock() {
            kept.push((
                self.within.learned(),
                of("divergences"),
                of("forgotten_actions"),
            ));
        }
    }
}

/// The flows to run: of another scheme, or of Rax with these settings, from learned or random
/// weights.
struct Chosen {
    spec: String,
    learned: Option<String>,
    every: Option<f64>,
    kept: Kept,
}

impl Chosen {
    fn selection(&self, registry: &Registry) -> Result<Selection, Error> {
        if let Some(scheme) = self.spec.strip_prefix("scheme=") {
            return Ok(registry.select(scheme)?);
        }
        let spec: RaxSpec = serde_json::from_str(&self.spec)?;
        let (learned, kept) = (self.learned.clone(), Arc::clone(&self.kept));
        let every = self.every.map_or(Duration::MAX, Duration::from_secs_f64);
        let next = self.every.map_or(Time::NEVER, |_| Time::ZERO);
        Ok(TUNED.built_by(move |setup| {
            let within = match &learned {
                Some(learned) => Rax::resumed(setup, &spec, learned),
                None => Rax::new(setup, spec.clone()),
            };
            Box::new(Watched {
                within: within.expect("settings in range"),
                every,
                next,
                kept: Arc::clone(&kept),
            })
        }))
    }
}

#[expect(clippy::disallowed_methods, reason = "it measures time")]
fn run(scenario: &str, seed: u64, seconds: u64, chosen: &Chosen) -> Result<(), Error> {
    let selection = chosen.selection(&registry())?;
    let start = Instant::now();
    let outcome = play(scenario, seed, seconds, &selection)?;
    let took = start.elapsed().as_secs_f64();
    for flow in &outcome.series {
        let series = &flow.series;
        let end = series.time_s.len();
        let rate = |seconds| mean(&series.throughput_mbps[seconds]);
        let lost = |seconds: std::ops::Range<usize>| {
            percent_lost(
                &series.lost_mbps[seconds.clone()],
                &series.sent_mbps[seconds],
            )
        };
        println!(
            "seed {seed} flow {:2}: last half {:.2} Mbit/s, {:.2}% lost; all {:.2}, {:.2}% lost; {took:.1} s",
            flow.flow,
            rate(end / 2..end),
            lost(end / 2..end),
            rate(0..end),
            lost(0..end),
        );
        println!("  Mbit/s {}", tens(end, rate));
        println!("  lost %  {}", tens(end, lost));
    }
    for (_, divergences, forgotten) in chosen.kept.lock().expect("no panic").iter() {
        if divergences + forgotten > 0.0 {
            println!("  diverged {divergences} times, gave up {forgotten} actions");
        }
    }
    Ok(())
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "rax SCENARIO FIRST-LAST SECONDS [SPEC [RUNS [EVERY]]]";
    let [scenario, seeds, seconds, rest @ ..] = arguments.as_slice() else {
        return Err(usage.into());
    };
    let (first, last) = seeds.split_once('-').ok_or(usage)?;
    let runs = rest.get(1).map_or(Ok(1), |text| text.parse::<u64>())?;
    for seed in first.parse::<u64>()?..=last.parse()? {
        let mut learned = None;
        for run_of_seed in 0..runs {
            let chosen = Chosen {
                spec: rest.first().map_or("{}", String::as_str).to_owned(),
                learned,
                every: rest.get(2).map(|text| text.parse()).transpose()?,
                kept: Kept::default(),
            };
            run(
                scenario,
                seed + 10_000 * run_of_seed,
                seconds.parse()?,
                &chosen,
            )?;
            let mut kept = chosen.kept.lock().expect("no panic");
            learned = kept.drain(..).next().map(|one| one.0);
        }
    }
    Ok(())
}
