//! Shows what each of Rax's settings changes: the tables of docs/decisions/0040-rax.md.
//!
//! `cargo run --release -p headway-policy --example rax_choices -- SECONDS SEEDS [OPTION VALUE]...`
//!
//! Each change runs on this many SEEDS, from 1001 on, which no published figure uses, for this many
//! SECONDS (at least 4). A row of the table is printed as soon as its runs are over. A line for
//! each run goes to standard error, with the results of its flows. The example uses all cores; the
//! table does not depend on their number.
//!
//! | option | value | default |
//! |---|---|---|
//! | `--scenario` | names, with commas between them | rax-1,rax-2 |
//! | `--first` | the first seed | 1001 |
//! | `--only` | the changes to try, with commas between them | all |
//! | `--alpha` | the weight of losses where a change gives none | 4 |
//! | `--resumed` | `all` or `networks` | not at all |
//!
//! Resumed flows restart in the middle of a run: with all that they have learned, as with
//! `restart=`, or without their optimisers' state and their recurrent units' memory.

#[path = "rax/runs.rs"]
mod runs;

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;

use headway_cc::{
    Bytes, CongestionControl, Control, Duration, Feedback, Probe, Rto, Selection, Sent, Setup, Tag,
};
use headway_policy::model::sha256;
use headway_policy::schemes::{Rax, RaxSpec};
use headway_sim::Outcome;
use runs::{Error, TUNED, mean, percent_lost, play};
use serde_json::Value;

/// The changes: a name, and a `RaxSpec` as JSON, whose missing keys have defaults.
const CHANGES: [(&str, &str); 27] = [
    ("default", "{}"),
    ("alpha 1", r#"{"alpha": 1}"#),
    ("alpha 2", r#"{"alpha": 2}"#),
    ("scale 0.3", r#"{"pal": {"action_scale": 0.3}}"#),
    ("scale 1", r#"{"pal": {"action_scale": 1}}"#),
    ("beta 0", r#"{"pal": {"entropy": 0}}"#),
    ("beta 1e-2", r#"{"pal": {"entropy": 1e-2}}"#),
    ("beta 1e-1", r#"{"pal": {"entropy": 1e-1}}"#),
    (
        "actor lr 3e-4",
        r#"{"pal": {"actor_optimizer": {"kind": "adam", "lr": 3e-4}}}"#,
    ),
    (
        "actor lr 3e-3",
        r#"{"pal": {"actor_optimizer": {"kind": "adam", "lr": 3e-3}}}"#,
    ),
    (
        "critic lr 1e-3",
        r#"{"pal": {"critic_optimizer": {"kind": "adam", "lr": 1e-3}}}"#,
    ),
    (
        "critic lr 1e-2",
        r#"{"pal": {"critic_optimizer": {"kind": "adam", "lr": 1e-2}}}"#,
    ),
    (
        "rmsprop",
        r#"{"pal": {"actor_optimizer": {"kind": "rmsprop", "lr": 1e-3},
            "critic_optimizer": {"kind": "rmsprop", "lr": 3e-3}}}"#,
    ),
    (
        "sgd, lr 0.03",
        r#"{"pal": {"actor_optimizer": {"kind": "sgd", "lr": 0.03}, "critic_optimizer": {"kind": "sgd", "lr": 0.03}}}"#,
    ),
    ("centre nothing", r#"{"pal": {"centre": "nothing"}}"#),
    ("centre segment", r#"{"pal": {"centre": "segment"}}"#),
    ("memory 0.99", r#"{"pal": {"advantage_memory": 0.99}}"#),
    (
        "memory 0 (not scaled)",
        r#"{"pal": {"advantage_memory": 0}}"#,
    ),
    ("as printed", r#"{"pal": {"weighting": "as-printed"}}"#),
    (
        "standard deviation 1",
        r#"{"pal": {"initial_deviation": 1}}"#,
    ),
    (
        "standard deviation at least 0.01",
        r#"{"pal": {"least_deviation": 0.01}}"#,
    ),
    (
        "standard deviation at least 0.1",
        r#"{"pal": {"least_deviation": 0.1}}"#,
    ),
    ("segment at most 256", r#"{"pal": {"longest": 256}}"#),
    ("segment at most 64", r#"{"pal": {"longest": 64}}"#),
    (
        "units 4",
        r#"{"pal": {"actor_units": 4, "critic_units": 4}}"#,
    ),
    (
        "units 16",
        r#"{"pal": {"actor_units": 16, "critic_units": 16}}"#,
    ),
    (
        "units 32",
        r#"{"pal": {"actor_units": 32, "critic_units": 32}}"#,
    ),
];

/// A flow's actor over one second or more: its window in packets, and the mean and standard
/// deviation of its actions.
#[derive(Clone, Copy, Debug, Default)]
struct Actor {
    second: usize,
    window: f64,
    mean: f64,
    deviation: f64,
    /// The number of fallbacks so far.
    fell_back: f64,
}

impl Probe for Actor {
    fn value(&mut self, name: &'static str, value: f64) {
        match name {
            "window_packets" => self.window = value,
            "action_mean" => self.mean = value,
            "action_deviation" => self.deviation = value,
            "divergences" => self.fell_back = value,
            _ => (),
        }
    }
}

/// How a flow restarts in the middle of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resumed {
    /// The flow does not restart.
    No,
    /// The flow restarts with all that it has learned.
    All,
    /// The flow restarts with the weights of its networks alone.
    Networks,
}

/// The actors of each flow, in the order in which flows begin.
type Kept = Arc<Mutex<Vec<Vec<Actor>>>>;

/// A flow whose actor is recorded every second.
#[derive(Debug)]
struct Watched {
    within: Rax,
    setup: Setup,
    spec: RaxSpec,
    /// When it restarts with its networks alone, if it does.
    restart: Duration,
    /// The number of fallbacks before that.
    earlier: f64,
    flow: usize,
    seconds: usize,
    kept: Kept,
}

impl Watched {
    fn actor(&self) -> Actor {
        let mut actor = Actor::default();
        self.within.probe(&mut actor);
        actor.fell_back += self.earlier;
        actor
    }

    /// Restarts as a new flow with these networks and no other learned state.
    fn restart(&mut self, feedback: &Feedback<'_>) {
        self.earlier = self.actor().fell_back;
        self.restart = Duration::ZERO;
        self.setup.start = feedback.now;
        self.setup.seed ^= 1 << 40;
        let fresh = Rax::new(&self.setup, self.spec.clone()).expect("settings in range");
        let body = |learned: &str| -> Value {
            let body = learned.split_once('\n').expect("two lines").1;
            serde_json::from_str(body).expect("it was just written")
        };
        let (mut body, own) = (body(&fresh.learned()), body(&self.within.learned()));
        body["nets"] = own["nets"].clone();
        let body = body.to_string();
        let text = format!("headway-learner 1 {}\n{body}\n", sha256(body.as_bytes()));
        self.within = Rax::resumed(&self.setup, &self.spec, &text).expect("it is whole");
    }
}

impl CongestionControl for Watched {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.within.on_sent(sent)
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        if self.restart > Duration::ZERO && feedback.now >= self.setup.start + self.restart {
            self.restart(feedback);
        }
        self.within.on_feedback(feedback);
        let second = feedback.now.as_secs_f64() as usize;
        if second >= self.seconds {
            self.seconds = second + 1;
            let actor = Actor {
                second,
                ..self.actor()
            };
            self.kept.lock().expect("no panic")[self.flow].push(actor);
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

/// Flows with these settings, for a run of this many seconds.
fn selection(spec: &RaxSpec, resumed: Resumed, seconds: u64, kept: &Kept) -> Selection {
    let half = Duration::from_secs_f64(seconds as f64 / 2.0);
    let mut spec = spec.clone();
    let mut restart = Duration::ZERO;
    match resumed {
        Resumed::No => (),
        Resumed::All => spec.restart = half,
        Resumed::Networks => restart = half,
    }
    let kept = Arc::clone(kept);
    TUNED.built_by(move |setup| {
        let mut flows = kept.lock().expect("no panic");
        flows.push(Vec::new());
        Box::new(Watched {
            within: Rax::new(setup, spec.clone()).expect("settings in range"),
            setup: *setup,
            spec: spec.clone(),
            restart,
            earlier: 0.0,
            flow: flows.len() - 1,
            seconds: 0,
            kept: Arc::clone(&kept),
        })
    })
}

/// The results of one run. If nothing else is said, they are of all senders together over the last
/// half, and only of flows that begin in the middle if there are any.
struct Found {
    mbps: f64,
    lost_percent: f64,
    jain: f64,
    /// The throughput over the whole run.
    all_mbps: f64,
    /// The number of flows that fell back to NewReno.
    fell_back: usize,
    /// Each flow over the last half: its rate, its window, its actor.
    flows: String,
}

impl Found {
    fn of(outcome: &Outcome, actors: &[Vec<Actor>], resumed: bool) -> Found {
        let (pooled, flows) = (&outcome.series[0].series, &outcome.series[1..]);
        // With one flow there is only the series of all flows.
        let flows = if flows.is_empty() {
            &outcome.series
        } else {
            flows
        };
        let end = pooled.time_s.len();
        let begin = if resumed { end / 2 } else { 0 };
        let half = usize::midpoint(begin, end);
        let rates: Vec<f64> = flows
            .iter()
            .map(|flow| mean(&flow.series.throughput_mbps[half..]))
            .collect();
        let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
        let mut text = String::new();
        for (rate, actors) in rates.iter().zip(actors) {
            let of = |from: usize, to: usize, get: fn(&Actor) -> f64| {
                let within = actors.iter().filter(|a| (from..to).contains(&a.second));
                mean(&within.map(get).collect::<Vec<_>>())
            };
            let all = |from, to| {
                format!(
                    "window {:.1}, mean {:.4}, standard deviation {:.3}",
                    of(from, to, |a| a.window),
                    of(from, to, |a| a.mean),
                    of(from, to, |a| a.deviation)
                )
            };
            let fell_back = actors.last().map_or(0.0, |a| a.fell_back);
            write!(
                text,
                " | {rate:.2} Mbit/s, {}, fell back {fell_back}",
                all(half, end)
            )
            .expect("it is memory");
            if resumed {
                let before = all(begin.saturating_sub(30), begin);
                let after = all(begin + 1, begin + 21);
                write!(text, "; 30 s before: {before}; 20 s after: {after}").expect("it is memory");
            }
        }
        let fallen = |actors: &&Vec<Actor>| actors.last().is_some_and(|a| a.fell_back > 0.0);
        Found {
            mbps: mean(&pooled.throughput_mbps[half..]),
            lost_percent: percent_lost(&pooled.lost_mbps[half..], &pooled.sent_mbps[half..]),
            jain: rates.iter().sum::<f64>().powi(2) / (rates.len() as f64 * squares).max(1e-9),
            all_mbps: mean(&pooled.throughput_mbps),
            fell_back: actors.iter().filter(fallen).count(),
            flows: text,
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    mean(&values[(values.len() - 1) / 2..=middle])
}

/// The unfairness from which one of two senders counts as shut out, since the other has nearly
/// everything.
const SHUT_OUT: f64 = 0.6;

/// The cells of one change on one scenario; `None` until all its runs are over.
fn cells(runs: &[Option<Found>]) -> Option<String> {
    let runs: Vec<&Found> = runs.iter().map(Option::as_ref).collect::<Option<_>>()?;
    let of = |get: fn(&Found) -> f64| runs.iter().map(move |run| get(run));
    let least = |get| of(get).fold(f64::INFINITY, f64::min);
    let count = |is: fn(&Found) -> bool| runs.iter().filter(|run| is(run)).count();
    Some(format!(
        "{:.2} | {:.2} | {:.2}% | {:.2} | {:.3} | {:.3} | {} | {} | {} of {}",
        median(of(|run| run.mbps)),
        least(|run| run.mbps),
        median(of(|run| run.lost_percent)),
        median(of(|run| run.all_mbps)),
        median(of(|run| run.jain)),
        least(|run| run.jain),
        count(|run| run.jain < SHUT_OUT),
        runs.iter().map(|run| run.fell_back).sum::<usize>(),
        count(|run| run.fell_back > 0),
        runs.len(),
    ))
}

/// The runs to do.
struct Chosen {
    seconds: u64,
    seeds: u64,
    first_seed: u64,
    scenarios: Vec<String>,
    resumed: Resumed,
    changes: Vec<(&'static str, RaxSpec)>,
}

impl Chosen {
    fn read(arguments: &[String]) -> Result<Chosen, Error> {
        let usage = "rax_choices SECONDS SEEDS [OPTION VALUE]..., in whole numbers from 4 and 1 on";
        let [seconds, seeds, options @ ..] = arguments else {
            return Err(usage.into());
        };
        let (seconds, seeds) = (seconds.parse()?, seeds.parse()?);
        if seconds < 4 || seeds < 1 {
            return Err(usage.into());
        }
        let (mut scenarios, mut alpha, mut only) = ("rax-1,rax-2", None, None);
        let (mut first_seed, mut resumed) = (1001, Resumed::No);
        for option in options.chunks(2) {
            let [name, value] = option else {
                return Err(format!("{} without a value", option[0]).into());
            };
            match (name.as_str(), value.as_str()) {
                ("--scenario", names) => scenarios = names,
                ("--first", seed) => first_seed = seed.parse()?,
                ("--only", names) => only = Some(names),
                ("--alpha", number) => alpha = Some(number.parse::<f32>()?),
                ("--resumed", "all") => resumed = Resumed::All,
                ("--resumed", "networks") => resumed = Resumed::Networks,
                _ => return Err(format!("unknown: {name} {value}").into()),
            }
        }
        let names: Vec<&str> = match only {
            Some(names) => names.split(',').collect(),
            None => CHANGES.iter().map(|change| change.0).collect(),
        };
        let changes = names.iter().map(|name| {
            let change = CHANGES.iter().find(|change| change.0 == *name);
            read(
                change.ok_or_else(|| format!("no change is called {name}"))?,
                alpha,
            )
        });
        Ok(Chosen {
            seconds,
            seeds,
            first_seed,
            scenarios: scenarios.split(',').map(str::to_owned).collect(),
            resumed,
            changes: changes.collect::<Result<_, _>>()?,
        })
    }

    fn run(&self, spec: &RaxSpec, scenario: &str, seed: u64) -> Result<Found, Error> {
        let kept = Kept::default();
        let selection = selection(spec, self.resumed, self.seconds, &kept);
        let outcome = play(scenario, seed, self.seconds, &selection)?;
        let actors = kept.lock().expect("no panic");
        Ok(Found::of(&outcome, &actors, self.resumed != Resumed::No))
    }
}

/// Reads the settings of a change, and checks them.
fn read(
    &(name, spec): &(&'static str, &str),
    alpha: Option<f32>,
) -> Result<(&'static str, RaxSpec), String> {
    let named = |error: &dyn std::fmt::Display| format!("{name}: {error}");
    let mut json: Value = serde_json::from_str(spec).map_err(|error| named(&error))?;
    if let Some(alpha) = alpha.filter(|_| json.get("alpha").is_none()) {
        json["alpha"] = alpha.into();
    }
    let spec: RaxSpec = serde_json::from_value(json).map_err(|error| named(&error))?;
    let any = Setup::new(Bytes::new(1250), 1);
    Rax::new(&any, spec.clone()).map_err(|error| named(&error))?;
    Ok((name, spec))
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let chosen = Chosen::read(&arguments)?;
    println!(
        "| change | scenario | Mbit/s | worst | loss | all | Jain | worst | below {SHUT_OUT} | flows that fell back | runs |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    // Each row is a change on a scenario. The runs are in the order of rows, then seeds.
    let seeds = chosen.seeds as usize;
    let row = |row: usize| {
        let scenarios = chosen.scenarios.len();
        let (name, spec) = &chosen.changes[row / scenarios];
        (*name, spec, chosen.scenarios[row % scenarios].as_str())
    };
    let total = chosen.changes.len() * chosen.scenarios.len() * seeds;
    let run = |job: usize| -> Result<Found, String> {
        let (name, spec, scenario) = row(job / seeds);
        let seed = chosen.first_seed + (job % seeds) as u64;
        let of = format!("{name}, {scenario}, seed {seed}");
        let found = chosen.run(spec, scenario, seed);
        let found = found.map_err(|error| format!("{of}: {error}"))?;
        eprintln!("{of}: Jain {:.3}{}", found.jain, found.flows);
        Ok(found)
    };
    let (next, cores) = (
        AtomicUsize::new(0),
        thread::available_parallelism().map_or(1, Into::into),
    );
    thread::scope(|scope| {
        let (results, finished) = channel();
        for _ in 0..cores.min(total) {
            let (next, run, results) = (&next, &run, results.clone());
            scope.spawn(move || {
                let jobs = std::iter::repeat_with(|| next.fetch_add(1, Relaxed));
                for job in jobs.take_while(|job| *job < total) {
                    if results.send((job, run(job))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(results);
        let mut found: Vec<Option<Found>> = (0..total).map(|_| None).collect();
        let mut printed = 0;
        for (job, result) in finished {
            found[job] = Some(result?);
            while let Some(cells) = found.chunks(seeds).nth(printed).and_then(cells) {
                let (name, _, scenario) = row(printed);
                println!("| {name} | {scenario} | {cells} |");
                printed += 1;
            }
        }
        Ok(())
    })
}
