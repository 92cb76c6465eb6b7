//! Runs of Rax with settings of your own, and statistics of the runs.
#![allow(dead_code, reason = "no example needs all of it")]

use headway_cc::{Duration, Need, Registry, Scheme, Selection, schemes};
use headway_scenario::{Scenario, TraceSpec, TraceStore, Transport};
use headway_sim::{Options, Outcome, Simulation};

/// Any error.
pub type Error = Box<dyn std::error::Error>;

/// Rax with other settings than a scheme has. The function that builds its flows sets them.
pub static TUNED: Scheme = Scheme::unlisted("rax-tuned", &[Need::PerPacket]);

/// All schemes.
pub fn registry() -> Registry {
    Registry::new(schemes::SCHEMES)
}

/// Runs over the scenario's own transport, with a value each second.
pub fn play(
    scenario: &str,
    seed: u64,
    seconds: u64,
    selection: &Selection,
) -> Result<Outcome, Error> {
    play_over(None, scenario, seed, seconds, selection)
}

/// Runs over another transport.
pub fn play_over(
    transport: Option<Transport>,
    scenario: &str,
    seed: u64,
    seconds: u64,
    selection: &Selection,
) -> Result<Outcome, Error> {
    let store = TraceStore::new([]);
    let traces = |spec: &TraceSpec| store.load_spec(spec).map_err(|e| e.to_string());
    let options = Options {
        duration: Duration::from_secs(seconds),
        warmup: Duration::ZERO,
        seed,
        grid: Some(Duration::from_secs(1)),
    };
    let mut network = Scenario::load(scenario)?.draw(seed);
    network.transport = transport.unwrap_or(network.transport);
    let simulation = Simulation::new(&network, selection, &registry(), &traces, options)?;
    Ok(simulation.finish()?)
}

/// The mean; 0 without values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The share of sent data that was lost, in %; 0 if nothing was sent.
pub fn percent_lost(lost: &[f64], sent: &[f64]) -> f64 {
    100.0 * mean(lost) / mean(sent).max(1e-9)
}

/// Applies `of` to each ten seconds.
pub fn tens(seconds: usize, of: impl Fn(std::ops::Range<usize>) -> f64) -> String {
    let each = (0..seconds).step_by(10);
    let texts = each.map(|k| format!("{:.1}", of(k..(k + 10).min(seconds))));
    texts.collect::<Vec<_>>().join(" ")
}
