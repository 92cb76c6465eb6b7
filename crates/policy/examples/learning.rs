//! Times a decision of Owl's network (60-512-256-7): alone, with a gradient step of 32 transitions,
//! and while another thread takes the steps. Prints microseconds as JSON: the mean of the fastest
//! of many rounds, and the median over rounds of the longest decision.
//!
//! `cargo run --release -p headway-policy --example learning`

use std::sync::mpsc::sync_channel;
use std::time::Instant;

use headway_cc::{Bytes, Setup, Stream};
use headway_policy::dqn::{DqnPolicy, DqnSpec, Step};
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

/// The time of a decision in microseconds, on average and the longest, if every `every`-th one
/// learns.
#[expect(clippy::disallowed_methods, reason = "it measures time")]
fn decision_us(every: u64, on_thread: bool) -> Result<[f64; 2], Box<dyn std::error::Error>> {
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
    if on_thread {
        let (thread, steps) = sync_channel::<Step>(1);
        std::thread::spawn(move || {
            for mut step in steps {
                step.take();
                step.give_back();
            }
        });
        policy.step_on_thread(&thread);
    }
    let mut random = Stream::new(2, "observations");
    let mut observation = || {
        (0..60)
            .map(|_| random.uniform() as f32)
            .collect::<Vec<f32>>()
    };
    let observations: Vec<Vec<f32>> = (0..64).map(|_| observation()).collect();
    let interval = Interval::default();
    let (mut best, mut longest) = (f64::INFINITY, Vec::new());
    for _ in 0..11 {
        let (mut sum, mut most) = (0.0, 0.0_f64);
        for observation in &observations {
            let start = Instant::now();
            policy.decide(observation, &interval);
            let us = start.elapsed().as_secs_f64() * 1e6;
            (sum, most) = (sum + us, most.max(us));
        }
        best = best.min(sum / observations.len() as f64);
        longest.push(most);
    }
    longest.sort_unstable_by(f64::total_cmp);
    Ok([best, longest[longest.len() / 2]])
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let every = DqnSpec::default().every;
    let [frozen, each, usual] = [u64::MAX, 1, every].map(|every| decision_us(every, false));
    let on_thread = decision_us(every, true)?;
    println!(
        "{}",
        json!({
            "every": every,
            "columns": ["mean_us", "longest_us"],
            "frozen": frozen?,
            "a step each": each?,
            "usual": usual?,
            "steps on another thread": on_thread,
        })
    );
    Ok(())
}
