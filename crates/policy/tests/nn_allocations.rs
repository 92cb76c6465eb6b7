//! Neither an answer nor learning allocates memory, once buffers have grown.

mod numbers;

use headway_policy::nn::{
    Activation, MaskSpec, NetKind, NetSpec, Optimizer, OptimizerSpec, clip_norm,
};
use numbers::{network, numbers};

#[test]
fn answers_and_learning_allocate_nothing() {
    for kind in [NetKind::Mlp, NetKind::Gru, NetKind::Lstm] {
        let recurrent_layers = (kind != NetKind::Mlp).then_some(1);
        let dense = 2 - recurrent_layers.unwrap_or(0);
        let spec = NetSpec {
            kind,
            layers: vec![8, 40, 2],
            activations: vec![Activation::Tanh; dense],
            recurrent_layers,
            mask: Some(MaskSpec {
                features: 4,
                known: 3,
                masked: vec![1, 2],
            }),
        };
        let mut network = network(&spec, 0);
        let (mut state, mut trace) = (network.state(), network.trace());
        let mut gradient = vec![0.0; network.parameters().len()];
        let adam = OptimizerSpec::Adam {
            lr: 1e-3,
            betas: [0.9, 0.999],
            eps: 1e-8,
        };
        let mut optimizer = Optimizer::new(adam, gradient.len()).expect("settings in range");
        let (x, mut y, dy) = (numbers(1, 8, 1.0), [0.0; 2], numbers(2, 10, 1.0));

        let answers = allocation_counter::measure(|| network.forward(&mut state, &x, &mut y));
        assert_eq!(answers.count_total, 0, "{kind:?}");

        let mut learn = || {
            trace.clear();
            for _ in 0..5 {
                network.forward_traced(&mut state, &mut trace, &x, &mut y);
            }
            gradient.fill(0.0);
            network.backward(&mut trace, &dy, &mut gradient, &mut []);
            clip_norm(&mut gradient, 0.5);
            optimizer.step(network.parameters_mut(), &gradient);
        };
        learn();
        assert_eq!(
            allocation_counter::measure(learn).count_total,
            0,
            "{kind:?}"
        );
    }
}
