//! Compares networks and optimisers with PyTorch's, from the file of scripts/nn_fixtures.py.

use std::collections::BTreeMap;

use crate::numbers::{network, numbers};
use headway_policy::nn::{NetSpec, Network, Optimizer, OptimizerSpec, clip_norm};
use serde::Deserialize;

#[derive(Deserialize)]
struct Fixtures {
    steps: usize,
    nets: BTreeMap<String, Net>,
    optimizers: BTreeMap<String, Steps>,
    clips: BTreeMap<String, Clip>,
}

#[derive(Deserialize)]
struct Net {
    spec: NetSpec,
    outputs: Vec<f32>,
    input_gradients: Option<Vec<f32>>,
    gradient: Option<BTreeMap<String, Vec<f32>>>,
}

#[derive(Deserialize)]
struct Steps {
    spec: OptimizerSpec,
    parameters: Vec<f32>,
}

#[derive(Deserialize)]
struct Clip {
    limit: f32,
    norm: f32,
    gradient: Vec<f32>,
}

fn fixtures() -> Fixtures {
    serde_json::from_str(include_str!("fixtures/nn.json")).expect("the file is as written")
}

/// The largest difference, relative to the largest number (at least 1).
fn off(ours: &[f32], theirs: &[f32]) -> f32 {
    assert_eq!(ours.len(), theirs.len());
    assert!(ours.iter().all(|v| v.is_finite()));
    let largest = theirs.iter().fold(1.0_f32, |most, v| most.max(v.abs()));
    let difference = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs());
    difference.fold(0.0, f32::max) / largest
}

/// The steps of a network, with the script's numbers: outputs, gradient, gradient of the inputs.
fn run(network: &Network, steps: usize) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
    let (inputs, outputs) = (network.spec().inputs(), network.spec().outputs());
    let (mut state, mut trace) = (network.state(), network.trace());
    let x = numbers(1, steps * inputs, 2.0);
    let mut y = vec![0.0; steps * outputs];
    for (x, y) in x.chunks(inputs).zip(y.chunks_mut(outputs)) {
        network.forward_traced(&mut state, &mut trace, x, y);
    }
    let mut gradient = vec![0.0; network.parameters().len()];
    let mut dx = vec![0.0; x.len()];
    network.backward(
        &mut trace,
        &numbers(2, y.len(), 1.0),
        &mut gradient,
        &mut dx,
    );
    (y, gradient, dx)
}

#[test]
fn outputs_match_pytorch_within_1e_5() {
    let Fixtures { steps, nets, .. } = fixtures();
    for (name, net) in &nets {
        let network = network(&net.spec, 0);
        let (traced, ..) = run(&network, steps);
        let off = off(&traced, &net.outputs);
        println!("{name}: off by {off:e}");
        assert!(off < 1e-5, "{name}: off by {off:e}");

        let (inputs, outputs) = (net.spec.inputs(), net.spec.outputs());
        let (mut state, mut y) = (network.state(), vec![0.0; outputs]);
        for (x, traced) in numbers(1, steps * inputs, 2.0)
            .chunks(inputs)
            .zip(traced.chunks(outputs))
        {
            network.forward(&mut state, x, &mut y);
            assert_eq!(
                y, traced,
                "{name}: what training computes is what is deployed"
            );
        }
    }
}

#[test]
fn gradients_through_time_match_autograd() {
    let Fixtures { steps, nets, .. } = fixtures();
    for (name, net) in &nets {
        let (Some(expected), Some(dx_expected)) = (&net.gradient, &net.input_gradients) else {
            continue;
        };
        let network = network(&net.spec, 0);
        let (_, gradient, dx) = run(&network, steps);
        let tensors = network.tensors(&gradient);
        assert_eq!(tensors.len(), expected.len(), "{name}");
        for (tensor, _, values) in tensors {
            let off = off(&values, &expected[&tensor]);
            assert!(off < 1e-5, "{name}, {tensor}: off by {off:e}");
        }
        assert!(off(&dx, dx_expected) < 1e-5, "{name}, inputs");
    }
}

#[test]
fn gradients_match_finite_differences_of_the_loss() {
    for (name, net) in fixtures()
        .nets
        .iter()
        .filter(|(_, net)| net.gradient.is_some())
    {
        let mut network = network(&net.spec, 0);
        let loss = |network: &Network| -> f64 {
            let (y, ..) = run(network, 3);
            let weights = numbers(2, y.len(), 1.0);
            y.iter()
                .zip(&weights)
                .map(|(y, w)| f64::from(*y) * f64::from(*w))
                .sum()
        };
        let (_, gradient, _) = run(&network, 3);
        for i in (0..gradient.len()).step_by(7) {
            let (at, step) = (network.parameters()[i], 4e-3);
            network.parameters_mut()[i] = at + step;
            let above = loss(&network);
            network.parameters_mut()[i] = at - step;
            let below = loss(&network);
            network.parameters_mut()[i] = at;
            let slope = (above - below) / (2.0 * f64::from(step));
            let off = (slope - f64::from(gradient[i])).abs();
            assert!(
                off < 2e-3,
                "{name}, parameter {i}: {slope} against {}",
                gradient[i]
            );
        }
    }
}

#[test]
fn optimizers_match_pytorchs() {
    for (name, steps) in fixtures().optimizers {
        let mut parameters = numbers(3, 8, 1.0);
        let mut optimizer = Optimizer::new(steps.spec, 8).expect("settings in range");
        for step in 0..10 {
            optimizer.step(&mut parameters, &numbers(100 + step, 8, 1.0));
            // Each step runs as if in another process.
            let saved = serde_json::to_string(&optimizer).expect("JSON");
            optimizer = serde_json::from_str(&saved).expect("what was saved");
        }
        let off = off(&parameters, &steps.parameters);
        assert!(off < 1e-6, "{name}: off by {off:e}");
    }
}

#[test]
fn gradients_are_clipped_as_pytorch_clips_them() {
    for (name, clip) in fixtures().clips {
        let mut gradient = numbers(4, 8, 1.0);
        let norm = clip_norm(&mut gradient, clip.limit);
        assert!((norm - clip.norm).abs() < 1e-6, "{name}: {norm}");
        assert!(off(&gradient, &clip.gradient) < 1e-6, "{name}");
    }
}
