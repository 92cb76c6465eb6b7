//! Runs good and bad policies under the guard, and prints a line of JSON for each run
//! (docs/guard.md).
//!
//! `guarded SCENARIO,... NAME,... FIRST-LAST`: names are of schemes (`owl`, guarded), or of bad
//! policies in a scheme's place: `owl/noise`, `owl/up`, `owl/down`, `owl/frozen`, `owl/slow`;
//! `FIRST-LAST` are seeds. Each run is repeated without the guard and with plain Cubic, and a line
//! compares the same seconds of all three. scripts/guard_tables.py makes tables of the lines.
//!
//! `guarded judge`: the time that a judgement takes.

#[path = "guarded/runs.rs"]
mod runs;

use headway_cc::{Duration, Time};
use headway_fixed::vectors::Draw;
use headway_fixed::{Guard, Limits, RecordBytes};
use runs::{Error, Seen, run};
use serde_json::{Value, json};

const SECONDS: u64 = 60;
/// The time after a trip that is compared, twice.
const AFTER: Duration = Duration::from_secs(5);

/// Compares a run with the guard, one without, and one of plain Cubic.
fn compare(scenario: &str, name: &str, seed: u64) -> Result<Value, Error> {
    let mut guarded = run(scenario, name, true, seed, SECONDS)?;
    let others = [
        ("policy", run(scenario, name, false, seed, SECONDS)?),
        ("plain", run(scenario, "cubic", false, seed, SECONDS)?),
    ];
    let end = Time::from_nanos(SECONDS * 1_000_000_000);
    let mut trips = std::mem::take(&mut guarded.trips);
    for trip in &mut trips {
        let at = Time::from_nanos((trip["at"].as_f64().unwrap_or(0.0) * 1e9) as u64);
        let flow = trip["flow"].as_u64().unwrap_or(0) as usize;
        for (span, until) in [("after", at + AFTER), ("later", at + AFTER + AFTER)] {
            let until = until.min(end);
            let from = if span == "after" {
                at
            } else {
                (at + AFTER).min(end)
            };
            if until.since(from) < Duration::from_secs(2) {
                continue;
            }
            trip[span] = json!({"guarded": guarded.between(flow, from, until)});
            for (who, seen) in &others {
                trip[span][*who] = seen.between(flow, from, until);
            }
        }
    }
    let whole = |seen: &Seen| -> Value {
        (0..seen.samples.len())
            .map(|flow| seen.between(flow, Time::ZERO, end))
            .collect()
    };
    Ok(json!({
        "scenario": scenario, "name": name, "seed": seed, "trips": trips, "returns": guarded.returns,
        "guarded": whole(&guarded), "policy": whole(&others[0].1), "plain": whole(&others[1].1),
    }))
}

/// Prints the nanoseconds of a judgement, from five times a million records: the median and the
/// minimum.
#[expect(clippy::disallowed_methods, reason = "it measures time")]
fn time_judge() {
    let mut draw = Draw::new(1);
    let mut records: Vec<RecordBytes> = vec![[0; 12]];
    for last in 0..1_000_000 {
        let next = draw.record(&records[last]);
        records.push(next);
    }
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            let mut guard = Guard::new(0, 10, 0);
            let began = std::time::Instant::now();
            for record in &records {
                std::hint::black_box(guard.judge(&Limits::default(), record));
            }
            began.elapsed().as_secs_f64() * 1e9 / records.len() as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{:.1} ns a judgement, {:.1} at least", times[2], times[0]);
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "guarded SCENARIO,... NAME,... FIRST-LAST, or guarded judge";
    if arguments == ["judge"] {
        time_judge();
        return Ok(());
    }
    let [scenarios, names, seeds] = arguments.as_slice() else {
        return Err(usage.into());
    };
    let (first, last) = seeds.split_once('-').ok_or(usage)?;
    let seeds = first.parse::<u64>()?..=last.parse()?;
    for scenario in scenarios.split(',') {
        for name in names.split(',') {
            for seed in seeds.clone() {
                println!("{}", compare(scenario, name, seed)?);
            }
        }
    }
    Ok(())
}
