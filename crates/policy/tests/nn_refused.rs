//! Invalid networks are refused in one line.

use crate::numbers;
use headway_policy::nn::{NetError, NetSpec, Network, Optimizer, OptimizerSpec};
use serde_json::{Value, json};

fn refusal(spec: Value) -> String {
    match serde_json::from_value::<NetSpec>(spec) {
        Ok(spec) => spec.check().expect_err("a bad spec").to_string(),
        Err(error) => error.to_string(),
    }
}

/// A network of six inputs with such a mask.
fn masked(mask: Value) -> Value {
    json!({"kind": "mlp", "layers": [6, 1], "activations": ["tanh"], "mask": mask})
}

#[test]
fn bad_specs_are_refused() {
    let most = "layers must be two or more numbers from 1 to 8192: inputs, units, outputs";
    for (spec, expected) in [
        (json!({"kind": "mlp", "layers": [3]}), most),
        (
            json!({"kind": "mlp", "layers": [3, 0, 1], "activations": ["relu", "relu"]}),
            most,
        ),
        (
            json!({"kind": "mlp", "layers": [3, 9000], "activations": ["relu"]}),
            most,
        ),
        (
            json!({"kind": "mlp", "layers": [3, 2, 1], "activations": ["tanh"]}),
            "1 activations for 2 dense layers; each needs one",
        ),
        (
            json!({"kind": "mlp", "layers": [3, 1], "activations": ["tanh"], "recurrent_layers": 1}),
            "recurrent_layers is set, but an mlp has none",
        ),
        (
            json!({"kind": "gru", "layers": [3, 4], "recurrent_layers": 2}),
            "recurrent_layers is 2, must be 1 to 1, the number of layers",
        ),
        (
            json!({"kind": "lstm", "layers": [3, 4, 5], "recurrent_layers": 2}),
            "recurrent layers must have equally many units, not [4, 5]",
        ),
        (
            json!({"kind": "mlp", "layers": [8192, 8192], "activations": ["tanh"]}),
            "67117056 parameters, must be at most 16777216",
        ),
        (
            json!({"kind": "rnn", "layers": [3, 4]}),
            "unknown variant `rnn`, expected one of `mlp`, `gru`, `lstm`",
        ),
        (
            json!({"kind": "mlp", "layers": [3, 1], "activations": ["elu"]}),
            "unknown variant `elu`",
        ),
        (
            masked(json!({"features": 4, "known": 0, "masked": [1]})),
            "net.mask: features is 4, must divide the 6 inputs into intervals",
        ),
        (
            masked(json!({"features": 0, "known": 0, "masked": [1]})),
            "net.mask: features is 0, must divide the 6 inputs into intervals",
        ),
        (
            masked(json!({"features": 3, "known": 3, "masked": [1]})),
            "net.mask: known is 3, must be an index below 3, the number of features",
        ),
        (
            masked(json!({"features": 3, "known": 2, "masked": [1, 2]})),
            "net.mask: masked is [1, 2], must be one or more indices below 3, each once and not known's",
        ),
        (
            masked(json!({"features": 3, "known": 2, "masked": [0, 1, 0]})),
            "net.mask: masked is [0, 1, 0], must be",
        ),
        (
            masked(json!({"features": 3, "known": 2, "masked": [3]})),
            "net.mask: masked is [3], must be",
        ),
        (
            masked(json!({"features": 3, "known": 2, "masked": []})),
            "net.mask: masked is [], must be",
        ),
        (
            masked(json!({"features": 3, "known": 2, "hidden": [0]})),
            "unknown field `hidden`",
        ),
        (
            json!({"kind": "mlp", "layers": [3, 1], "width": 3}),
            "unknown field `width`",
        ),
    ] {
        let said = refusal(spec.clone());
        assert!(said.contains(expected), "{spec}: {said}");
        assert_eq!(said.lines().count(), 1);
    }
}

#[test]
fn bad_optimizers_are_refused() {
    for (spec, expected) in [
        (
            json!({"kind": "sgd", "lr": 0.0}),
            "optimizer: lr is 0, must be above 0",
        ),
        (
            json!({"kind": "rmsprop", "lr": 0.1, "eps": -1.0}),
            "optimizer: eps is -1, must be above 0",
        ),
        (
            json!({"kind": "adam", "lr": 0.1, "betas": [0.9, 1.0]}),
            "optimizer: momentum, alpha and betas must be 0 to below 1, not 1",
        ),
    ] {
        let spec: OptimizerSpec = serde_json::from_value(spec).expect("it can be read");
        assert_eq!(spec.check().expect_err("a bad spec").to_string(), expected);
        let made = Optimizer::new(spec, 2);
        assert_eq!(made.expect_err("a bad spec").to_string(), expected);
    }
    let adam: OptimizerSpec =
        serde_json::from_value(json!({"kind": "adam", "lr": 0.1})).expect("it can be read");
    assert_eq!(adam.check(), Ok(()));
    let saved = |square: Value| {
        let spec = json!({"kind": "adam", "lr": 0.1});
        let saved =
            json!({"spec": spec, "mean": [0.5, 0.5], "square": square, "powers": [0.9, 0.999]});
        serde_json::from_value::<Optimizer>(saved)
    };
    assert!(saved(json!([0.25, 0.25])).is_ok());
    for square in [json!([0.25]), json!([0.25, -1.0])] {
        let error = saved(square).expect_err("moments that cannot be");
        assert!(
            error.to_string().contains("two for each parameter"),
            "{error}"
        );
    }
}

#[test]
fn bad_tensors_are_refused() {
    let spec: NetSpec = serde_json::from_value(
        json!({"kind": "gru", "layers": [3, 4, 2], "activations": ["tanh"]}),
    )
    .expect("a good spec");
    let refused = |bad: fn(&mut Vec<f32>)| {
        let mut source = |name: &str, _: &[usize]| {
            let mut values = numbers::of(&spec, 0, name);
            if name == "gru.weight_hh_l0" {
                bad(&mut values);
            }
            Ok(values)
        };
        Network::new(&spec, &mut source)
            .expect_err("a bad tensor")
            .to_string()
    };
    assert_eq!(
        refused(|values| values.truncate(47)),
        "tensor gru.weight_hh_l0: 47 numbers, must be 48 ([12, 4])"
    );
    assert_eq!(
        refused(|values| values[5] = f32::NAN),
        "tensor gru.weight_hh_l0: number 5 is NaN, must be finite"
    );
    assert_eq!(
        refused(|values| values[0] = f32::INFINITY),
        "tensor gru.weight_hh_l0: number 0 is inf, must be finite"
    );
    let missing = Network::new(&spec, &mut |name, _| Err(NetError(format!("no {name}"))));
    assert_eq!(
        missing.expect_err("no tensors").to_string(),
        "no gru.weight_ih_l0"
    );
}

#[test]
fn tensors_round_trip_unchanged() {
    let spec: NetSpec = serde_json::from_value(json!(
        {"kind": "lstm", "layers": [3, 4, 4, 5, 2], "activations": ["tanh", "relu"], "recurrent_layers": 2}
    ))
    .expect("a good spec");
    let network = numbers::network(&spec, 3);
    let tensors = network.tensors(network.parameters());
    let names: Vec<(String, Vec<usize>)> = tensors
        .iter()
        .map(|(name, shape, _)| (name.clone(), shape.clone()))
        .collect();
    assert_eq!(names, spec.tensors());
    for (name, _, values) in tensors {
        assert_eq!(values, numbers::of(&spec, 3, &name), "{name}");
    }
}
