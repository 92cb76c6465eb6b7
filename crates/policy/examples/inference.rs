//! Times one answer of a network, on one core. Prints nanoseconds as JSON,
//! `{network: {instruction set: median}}`.
//!
//! `cargo run --release -p headway-policy --example inference -- NET.json...`: each file has
//! `name`, `net` (as in a model's card), `tensors` (name to numbers, row by row) and `input`. The
//! outputs are printed too, for comparison.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use headway_policy::nn::{InstructionSet, NetError, NetSpec, Network};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Case {
    name: String,
    net: NetSpec,
    tensors: BTreeMap<String, Vec<f32>>,
    input: Vec<f32>,
}

/// The median time of one answer, over rounds of many answers.
#[expect(clippy::disallowed_methods, reason = "it measures time")]
fn median_ns(network: &Network, input: &[f32]) -> f64 {
    let (mut state, mut output) = (network.state(), vec![0.0; network.spec().outputs()]);
    let answers = 2_000_000 / network.parameters().len().max(500);
    let mut rounds: Vec<f64> = (0..200)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..answers {
                network.forward(&mut state, black_box(input), &mut output);
                black_box(&output);
            }
            start.elapsed().as_nanos() as f64 / answers as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut results = BTreeMap::new();
    for path in std::env::args().skip(1) {
        let case: Case = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
        let tensors = case.tensors;
        let missing = |name: &str| NetError(format!("{path}: no tensor {name}"));
        let network = Network::new(&case.net, &mut |name, _| {
            tensors.get(name).cloned().ok_or_else(|| missing(name))
        })?;
        let mut output = vec![0.0; case.net.outputs()];
        network.forward(&mut network.state(), &case.input, &mut output);
        let times: BTreeMap<String, Value> = (InstructionSet::available().iter())
            .map(|set| {
                let network = network.clone().with_instruction_set(*set);
                (set.to_string(), json!(median_ns(&network, &case.input)))
            })
            .collect();
        results.insert(case.name, json!({"ns": times, "output": output}));
    }
    println!("{}", serde_json::to_string(&results)?);
    Ok(())
}
