//! What Rax's settings change, one at a time: the table of docs/decisions/0040-rax.md.
//!
//! `cargo run --release -p headway-policy --example rax_choices -- SECONDS SEEDS`
//!
//! Each change runs on this many SEEDS, 1001 and up, that no published figure uses, for this many
//! SECONDS (at least 2), with one sender and with two. A row of the table is printed as soon as its
//! runs are over, a line on standard error counts them. All cores are used; the table is the same
//! however many there are.

#[path = "rax/runs.rs"]
mod runs;

use std::io::{Write, stderr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread;

use headway_cc::{Bytes, Setup};
use headway_policy::schemes::{Rax, RaxSpec};
use headway_sim::Outcome;
use runs::{Error, TUNED, mean, percent_lost, play};

const FIRST_SEED: u64 = 1001;
const SCENARIOS: [&str; 2] = ["rax-1", "rax-2"];

/// What is changed, and a `RaxSpec` as JSON, of which what is left out is the default.
const CHANGES: [(&str, &str); 26] = [
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

/// What one run came to: of all senders together, over the last half where nothing else is said.
struct Found {
    mbps: f64,
    lost_percent: f64,
    jain: f64,
    /// Over the whole run.
    all_mbps: f64,
    /// How often a flow fell back to NewReno.
    fell_back: u64,
}

impl Found {
    fn of(outcome: &Outcome) -> Found {
        let (pooled, flows) = (&outcome.series[0].series, &outcome.series[1..]);
        let half = pooled.time_s.len() / 2;
        let rates = flows
            .iter()
            .map(|f| mean(&f.series.throughput_mbps[half..]));
        let rates: Vec<f64> = rates.collect();
        let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
        Found {
            mbps: mean(&pooled.throughput_mbps[half..]),
            lost_percent: percent_lost(&pooled.lost_mbps[half..], &pooled.sent_mbps[half..]),
            jain: rates.iter().sum::<f64>().powi(2) / (rates.len() as f64 * squares).max(1e-9),
            all_mbps: mean(&pooled.throughput_mbps),
            fell_back: outcome.rows[0].metrics.guard_trips,
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    mean(&values[(values.len() - 1) / 2..=middle])
}

/// The cells of one change on one scenario; `None` until all its runs are over.
fn cells(runs: &[Option<Found>], several: bool) -> Option<String> {
    let runs: Vec<&Found> = runs.iter().map(Option::as_ref).collect::<Option<_>>()?;
    let of = |get: fn(&Found) -> f64| runs.iter().map(move |run| get(run));
    let worst = of(|run| run.mbps).fold(f64::INFINITY, f64::min);
    let jain = match several {
        true => format!("{:.3} | ", median(of(|run| run.jain))),
        false => String::new(),
    };
    Some(format!(
        "{:.2} | {:.2}% | {jain}{worst:.2} | {:.2} | {}",
        median(of(|run| run.mbps)),
        median(of(|run| run.lost_percent)),
        median(of(|run| run.all_mbps)),
        runs.iter().map(|run| run.fell_back).sum::<u64>(),
    ))
}

/// The settings of a change, which are in range.
fn read(&(name, spec): &(&str, &str)) -> Result<RaxSpec, String> {
    let named = |error: &dyn std::fmt::Display| format!("{name}: {error}");
    let spec: RaxSpec = serde_json::from_str(spec).map_err(|error| named(&error))?;
    let any = Setup::new(Bytes::new(1250), 1);
    Rax::new(&any, spec.clone()).map_err(|error| named(&error))?;
    Ok(spec)
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Result<Vec<u64>, _> = arguments.iter().map(|text| text.parse()).collect();
    let (seconds, seeds) = match numbers.as_deref() {
        Ok(&[seconds, seeds]) if seconds >= 2 && seeds >= 1 => (seconds, seeds),
        _ => return Err("rax_choices SECONDS SEEDS, in whole numbers from 2 and 1 on".into()),
    };
    let specs: Vec<RaxSpec> = CHANGES.iter().map(read).collect::<Result<_, _>>()?;

    println!(
        "| change | one sender | loss | worst | all | fell back | two senders | loss | Jain | worst | all | fell back |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    // Change by change, in each scenario by scenario, in each seed by seed.
    let per_change = SCENARIOS.len() * seeds as usize;
    let total = specs.len() * per_change;
    let run = |job: usize| -> Result<Found, String> {
        let spec = specs[job / per_change].clone();
        let tuned = TUNED.built_by(move |setup| {
            Box::new(Rax::new(setup, spec.clone()).expect("settings in range"))
        });
        let scenario = SCENARIOS[job % per_change / seeds as usize];
        let seed = FIRST_SEED + job as u64 % seeds;
        let outcome = play(scenario, seed, seconds, &tuned);
        let outcome = outcome.map_err(|error| format!("{scenario}, seed {seed}: {error}"))?;
        Ok(Found::of(&outcome))
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
        for (done, (job, result)) in finished.iter().enumerate() {
            found[job] = Some(result?);
            while let Some(runs) = found.chunks(per_change).nth(printed) {
                let (one, two) = runs.split_at(seeds as usize);
                let (Some(one), Some(two)) = (cells(one, false), cells(two, true)) else {
                    break;
                };
                eprint!("\r\x1b[K");
                println!("| {} | {one} | {two} |", CHANGES[printed].0);
                printed += 1;
            }
            eprint!("\r{} of {total} runs", done + 1);
            stderr().flush()?;
        }
        eprintln!();
        Ok(())
    })
}
