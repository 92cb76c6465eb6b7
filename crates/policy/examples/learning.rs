//! Times a decision of Owl's network (60-512-256-7) on one core, alone and with a gradient step of
//! 32 transitions: prints microseconds as JSON, the fastest of many rounds.
//!
//! `cargo run --release -p headway-policy --example learning`

use std::time::Instant;

use headway_cc::{Bytes, Setup, Stream};
use headway_policy::dqn::{DqnPolicy, DqnSpec};
use headway_policy::nn::{NetSpec, Network};
use headway_policy::{Interval, Policy, Shaping, Utility};
use serde_json::json;

fn network() -> Result<Network, Box<dyn std::error::Error>> {
    let spec = json!({"kind": "mlp", "layers": [60, 512, 256, 7], "activations": ["relu", "relu", "identity"]});
    let spec: NetSpec = serde_json::from_value(spec)?;
    let mut random = Stream::new(1, "weights");
    let network = Network::new(&spec, &mut |_, shape| {
        let size: usize = shape.iter().product();
        let scale = 1.0 / f64::from(u32::try_from(*shape.last().unwrap_or(&1)).unwrap_or(1)).sqrt();
        Ok((0..size)
            .map(|_| (scale * random.normal()) as f32)
            .collect())
    })?;
    Ok(network)
}

/// The time of a decision in microseconds, where every so many learn.
#[expect(clippy::disallowed_methods, reason = "it measures time")]
fn decision_us(every: u64) -> Result<f64, Box<dyn std::error::Error>> {
    let spec = DqnSpec {
        warmup: 1,
        every,
        ..DqnSpec::default()
    };
    let utility = Utility {
        delta: 0.5,
        beta: 0.5,
        shaping: Shaping::default(),
    };
    let setup = Setup::new(Bytes::new(1500), 1);
    let mut policy = DqnPolicy::new(network()?, spec, utility, 0.01, &setup)?;
    let mut random = Stream::new(2, "observations");
    let mut observation = || {
        (0..60)
            .map(|_| random.uniform() as f32)
            .collect::<Vec<f32>>()
    };
    let observations: Vec<Vec<f32>> = (0..64).map(|_| observation()).collect();
    let mut best = f64::INFINITY;
    for _ in 0..10 {
        let start = Instant::now();
        for observation in &observations {
            policy.decide(observation, &Interval::default());
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e6 / observations.len() as f64);
    }
    Ok(best)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let frozen = decision_us(u64::MAX)?;
    let every = DqnSpec::default().every;
    println!(
        "{}",
        json!({"frozen": frozen, "a step each": decision_us(1)?, "usual": decision_us(every)?, "every": every})
    );
    Ok(())
}
