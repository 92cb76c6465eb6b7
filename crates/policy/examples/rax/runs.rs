//! Runs of Rax with settings of one's own, and the numbers that tell how they went.
#![allow(dead_code, reason = "no example needs all of it")]

use headway_cc::{Duration, Need, Registry, Scheme, Selection, schemes};
use headway_scenario::{Scenario, TraceSpec, TraceStore, Transport};
use headway_sim::{Options, Outcome, Simulation};

/// Whatever goes wrong.
pub type Error = Box<dyn std::error::Error>;

/// Rax as no scheme has it: what builds its flows says how.
pub static TUNED: Scheme = Scheme::unlisted("rax-tuned", &[Need::PerPacket]);

/// The schemes there are.
pub fn registry() -> Registry {
    Registry::new(schemes::SCHEMES)
}

/// A run over the scenario's own transport, with series of a second.
pub fn play(
    scenario: &str,
    seed: u64,
    seconds: u64,
    selection: &Selection,
) -> Result<Outcome, Error> {
    play_over(None, scenario, seed, seconds, selection)
}

/// The same over another.
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

/// The mean; 0 of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// What was lost of what was sent, in %; 0 of nothing.
pub fn percent_lost(lost: &[f64], sent: &[f64]) -> f64 {
    100.0 * mean(lost) / mean(sent).max(1e-9)
}

/// Of ten seconds each, what `of` makes of them.
pub fn tens(seconds: usize, of: impl Fn(std::ops::Range<usize>) -> f64) -> String {
    let each = (0..seconds).step_by(10);
    let texts = each.map(|k| format!("{:.1}", of(k..(k + 10).min(seconds))));
    texts.collect::<Vec<_>>().join(" ")
}
