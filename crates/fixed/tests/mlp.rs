//! Compares the network with a direct implementation of the formula in `nets.h`, in numbers that
//! cannot overflow.

use headway_fixed::vectors::Draw;
use headway_fixed::{Mlp, MlpValues};

/// round(sum * multiplier / 2^shift), a half rounded up.
fn scaled(sum: i128, multiplier: u32, shift: u32) -> i128 {
    let product = sum * i128::from(multiplier % (1 << 24));
    let unit = 1i128 << (shift % 64);
    // With a unit of 1 nothing is rounded, since the scaled sum is a whole number.
    (2 * product + unit).div_euclid(2 * unit)
}

fn dot(weights: &[i8], values: &[u8], bias: i32) -> i128 {
    let products = weights.iter().zip(values);
    let sum: i128 = products.map(|(w, v)| i128::from(*w) * i128::from(*v)).sum();
    sum + i128::from(bias)
}

fn reference(net: &Mlp, inputs: &[u8]) -> (Vec<u8>, Vec<u8>, i128) {
    let layer = |n: usize, sum: i128| scaled(sum, net.multipliers[n], net.shifts[n]);
    let clip = |value: i128| value.clamp(0, 255) as u8;
    let of_rows =
        |n: usize, rows: &mut dyn Iterator<Item = (&[i8], i32)>, values: &[u8]| -> Vec<u8> {
            rows.map(|(row, bias)| clip(layer(n, dot(row, values, bias))))
                .collect()
        };
    let mut rows = (net.weights1.iter().map(|row| &row[..])).zip(net.biases1);
    let hidden1 = of_rows(0, &mut rows, inputs);
    let mut rows = (net.weights2.iter().map(|row| &row[..])).zip(net.biases2);
    let hidden2 = of_rows(1, &mut rows, &hidden1);
    let output = layer(2, dot(&net.weights3, &hidden2, net.bias3));
    (hidden1, hidden2, output)
}

#[test]
fn the_network_matches_its_formula_bit_for_bit() {
    let mut draw = Draw::new(1);
    let (mut least, mut largest, mut between) = (0u32, 0u32, 0u32);
    for _ in 0..20_000 {
        let (net, mut values) = (draw.net(), draw.values());
        let (hidden1, hidden2, output) = reference(&net, &values.inputs);
        assert_eq!(i128::from(net.run(&mut values)), output);
        assert_eq!(
            (&values.hidden1[..], &values.hidden2[..]),
            (&hidden1[..], &hidden2[..])
        );
        for unit in hidden1.iter().chain(&hidden2) {
            match unit {
                0 => least += 1,
                255 => largest += 1,
                _ => between += 1,
            }
        }
    }
    // The vectors contain both extremes and values between them.
    assert!(
        least.min(largest).min(between) > 100_000,
        "{least} {largest} {between}"
    );
}

#[test]
fn the_largest_values_do_not_overflow() {
    for (weight, bias) in [(i8::MIN, i32::MIN), (i8::MAX, i32::MAX)] {
        for shift in 0..64 {
            let net = Mlp {
                multipliers: [u32::MAX; 3],
                shifts: [shift; 3],
                biases1: [bias; 32],
                biases2: [bias; 16],
                bias3: bias,
                weights1: [[weight; 30]; 32],
                weights2: [[weight; 32]; 16],
                weights3: [weight; 16],
                unused: 0,
            };
            let mut values = MlpValues {
                inputs: [255; 30],
                ..MlpValues::default()
            };
            let output = net.run(&mut values);
            assert_eq!(i128::from(output), reference(&net, &[255; 30]).2);
            assert!(output.unsigned_abs() < 1 << 56);
        }
    }
}
