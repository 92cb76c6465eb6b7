//! Every instruction set gives the same bits, and so does a plain loop.

use crate::numbers::{network, numbers, of};
use headway_policy::nn::{
    Activation, InstructionSet, MaskSpec, NetKind, NetSpec, Network, sigmoid, tanh,
};

const KINDS: [NetKind; 3] = [NetKind::Mlp, NetKind::Gru, NetKind::Lstm];
const ACTIVATIONS: [Activation; 5] = [
    Activation::Identity,
    Activation::Relu,
    Activation::LeakyRelu,
    Activation::Tanh,
    Activation::Sigmoid,
];

/// A random network, with widths that fill registers and widths that do not.
fn some_spec(seed: u64) -> NetSpec {
    let draws: Vec<usize> = (numbers(seed, 12, 1.0).iter())
        .map(|v| ((v + 1.0) * 500.0) as usize)
        .collect();
    let kind = KINDS[draws[0] % 3];
    let recurrent = if kind == NetKind::Mlp {
        0
    } else {
        1 + draws[1] % 2
    };
    let dense = draws[2] % 4 + usize::from(recurrent == 0);
    let widest = if draws[3].is_multiple_of(10) { 300 } else { 40 };
    let mut layers: Vec<usize> = (0..=recurrent + dense)
        .map(|n| 1 + draws[4 + n] % widest)
        .collect();
    if recurrent == 2 {
        layers[2] = layers[1];
    }
    let mask = draws[1].is_multiple_of(3).then(|| {
        let features = 2 + draws[2] % 5;
        layers[0] = features * (1 + draws[3] % 4);
        let known = draws[5] % features;
        MaskSpec {
            features,
            known,
            masked: (0..features).filter(|n| *n != known).collect(),
        }
    });
    NetSpec {
        kind,
        mask,
        activations: (0..dense)
            .map(|n| ACTIVATIONS[(draws[11] + n) % 5])
            .collect(),
        layers,
        recurrent_layers: (recurrent > 0).then_some(recurrent),
    }
}

/// The outputs of four steps and the gradients of their weighted sum, as bits.
fn bits(network: &Network, seed: u64) -> Vec<u32> {
    let (inputs, outputs) = (network.spec().inputs(), network.spec().outputs());
    let (mut state, mut trace) = (network.state(), network.trace());
    let mut all = vec![0.0; 4 * outputs];
    let x = numbers(seed, 4 * inputs, 2.0);
    for (x, y) in x.chunks(inputs).zip(all.chunks_mut(outputs)) {
        network.forward_traced(&mut state, &mut trace, x, y);
    }
    let mut gradient = vec![0.0; network.parameters().len()];
    let mut dx = vec![0.0; x.len()];
    network.backward(
        &mut trace,
        &numbers(seed + 1, all.len(), 1.0),
        &mut gradient,
        &mut dx,
    );
    all.iter()
        .chain(&gradient)
        .chain(&dx)
        .map(|v| v.to_bits())
        .collect()
}

#[test]
fn every_instruction_set_gives_the_same_bits() {
    let sets = InstructionSet::available();
    println!(
        "instruction sets: {}",
        sets.iter()
            .map(|s| s.to_string())
            .collect::<Vec<_>>()
            .join(", ")
    );
    for seed in 0..2000 {
        let network = network(&some_spec(seed), seed);
        let expected = bits(&network.clone().with_instruction_set(sets[0]), seed);
        for set in &sets[1..] {
            let got = bits(&network.clone().with_instruction_set(*set), seed);
            assert!(got == expected, "{set} differs, net {:?}", network.spec());
        }
    }
}

#[test]
fn an_mlp_matches_a_plain_loop_bit_for_bit() {
    for seed in (0..600).filter(|seed| some_spec(*seed).kind == NetKind::Mlp) {
        let spec = some_spec(seed);
        let network = network(&spec, seed);
        let input = numbers(seed, spec.inputs(), 2.0);
        let mut x = input.clone();
        if let Some(mask) = &spec.mask {
            let weight = of(&spec, seed, "mask.weight");
            let bias = of(&spec, seed, "mask.bias");
            for interval in x.chunks_mut(mask.features) {
                for (j, &at) in mask.masked.iter().enumerate() {
                    let known = interval[mask.known];
                    let share = sigmoid(weight[j] * known + bias[j]);
                    interval[at] *= if known > 0.0 { share } else { 0.0 };
                }
            }
        }
        for (n, activation) in spec.activations.iter().enumerate() {
            let (inputs, outputs) = (spec.layers[n], spec.layers[n + 1]);
            let weight = of(&spec, seed, &format!("layers.{n}.weight"));
            let bias = of(&spec, seed, &format!("layers.{n}.bias"));
            let mut y = Vec::new();
            for output in 0..outputs {
                let mut sum = bias[output];
                for input in 0..inputs {
                    sum += weight[output * inputs + input] * x[input];
                }
                y.push(match activation {
                    Activation::Identity => sum,
                    Activation::Relu if sum > 0.0 => sum,
                    Activation::Relu => 0.0,
                    Activation::LeakyRelu if sum > 0.0 => sum,
                    Activation::LeakyRelu => 0.01 * sum,
                    Activation::Tanh => tanh(sum),
                    Activation::Sigmoid => sigmoid(sum),
                });
            }
            x = y;
        }
        let mut output = vec![0.0; spec.outputs()];
        network.forward(&mut network.state(), &input, &mut output);
        let bits = |v: &[f32]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&output), bits(&x), "{spec:?}");
    }
}

#[test]
fn tanh_and_sigmoid_are_within_their_stated_error() {
    // Every 4099th float, and both infinities.
    let all = (0..=u32::MAX / 4099).map(|n| f32::from_bits(n * 4099));
    let (mut tanh_off, mut relative_off, mut sigmoid_off) = (0.0_f64, 0.0_f64, 0.0_f64);
    for x in all
        .chain([f32::INFINITY, f32::NEG_INFINITY])
        .filter(|x| !x.is_nan())
    {
        let exact = libm::tanh(f64::from(x));
        let off = (f64::from(tanh(x)) - exact).abs();
        tanh_off = tanh_off.max(off);
        // Below this the floats themselves are too coarse.
        if x.abs() > f32::MIN_POSITIVE {
            relative_off = relative_off.max(off / exact.abs());
        }
        let exact = 1.0 / (1.0 + libm::exp(-f64::from(x)));
        sigmoid_off = sigmoid_off.max((f64::from(sigmoid(x)) - exact).abs());
    }
    println!(
        "tanh is off by {tanh_off:e}, relatively {relative_off:e}; sigmoid by {sigmoid_off:e}"
    );
    assert!(tanh_off < 2e-7 && relative_off < 2e-7 && sigmoid_off < 2e-7);
    assert!(tanh(f32::NAN).is_nan() && sigmoid(f32::NAN).is_nan());
}
