//! The same numbers as scripts/nn_fixtures.py computes, and networks of them.

use headway_policy::nn::{NetSpec, Network};

/// Numbers between -scale and scale.
pub fn numbers(seed: u64, count: usize, scale: f64) -> Vec<f32> {
    (1..=count as u64)
        .map(|n| {
            let mixed = n
                .wrapping_add(seed << 32)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let fraction = (mixed >> 40) as f64 / f64::from(1 << 24);
            ((2.0 * fraction - 1.0) * scale) as f32
        })
        .collect()
}

/// The numbers of one of a network's tensors, row by row.
pub fn of(spec: &NetSpec, seed: u64, name: &str) -> Vec<f32> {
    let tensors = spec.tensors();
    let n = tensors
        .iter()
        .position(|t| t.0 == name)
        .expect("a tensor of the network");
    let shape = &tensors[n].1;
    let scale = match shape[..] {
        [_, inputs] => libm::sqrt(3.0 / inputs as f64),
        _ => 1.0,
    };
    numbers(seed + 10 + n as u64, shape.iter().product(), scale)
}

/// A network of these tensors.
pub fn network(spec: &NetSpec, seed: u64) -> Network {
    Network::new(spec, &mut |name, _| Ok(of(spec, seed, name))).expect("a good network")
}
