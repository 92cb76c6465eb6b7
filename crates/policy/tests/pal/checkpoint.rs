//! What was learned is kept bit for bit, and malformed checkpoints are refused.

use headway_cc::Stream;
use headway_policy::nn::OptimizerSpec;
use headway_policy::pal::{Agent, Checkpoint, PalSpec, Weights};

use crate::task::{Plain, agent, numbers, observation, plain, reward, weights};

fn adam() -> PalSpec {
    let adam = OptimizerSpec::Adam {
        lr: 1e-2,
        betas: [0.9, 0.999],
        eps: 1e-8,
    };
    PalSpec {
        actor_optimizer: adam,
        critic_optimizer: adam,
        advantage_memory: 0.9,
        ..plain(10)
    }
}

/// Acts and learns, and returns the actions.
fn run(agent: &mut Agent<Plain, 1>, weights: &mut Weights<1>) -> Vec<f32> {
    let mut act = |step| {
        let seen = observation(step, 0.0);
        let action = agent
            .act(weights, &seen, 1.0, f32::INFINITY, [1.0])
            .expect("finite");
        let number = agent.partial_action(1.0);
        agent.feedback(number, &[reward(seen, action)]);
        action
    };
    (0..500).map(&mut act).collect()
}

fn saved() -> (Weights<1>, Agent<Plain, 1>, String) {
    let mut weights = weights(adam());
    let mut agent = agent(&weights);
    run(&mut agent, &mut weights);
    let checkpoint = Checkpoint {
        weights: weights.clone(),
        memories: agent.memories(),
    };
    (weights, agent, checkpoint.write())
}

#[test]
fn a_saved_learner_continues_bit_for_bit() {
    let (mut weights, agent, text) = saved();
    let mut read = Checkpoint::<1>::read(&text, 2, &[1]).expect("whole");
    assert_eq!(read.write(), text);
    let begin = |weights: &mut Weights<1>| {
        let mut next = Agent::new(Plain, weights, Stream::new(8, "actions"));
        next.remember(&agent.memories());
        run(&mut next, weights)
    };
    assert_eq!(begin(&mut read.weights), begin(&mut weights));
    assert_eq!(numbers(&read.weights), numbers(&weights));
    assert_eq!(read.weights.updates(), weights.updates());
    assert!(weights.updates() > 90);
}

#[test]
fn incomplete_checkpoints_are_refused_in_one_line() {
    let (_, _, text) = saved();
    let refused = |text: &str, inputs: usize| {
        let error = Checkpoint::<1>::read(text, inputs, &[1]).expect_err("refused");
        assert_eq!(error.0.lines().count(), 1, "{error}");
        error.0
    };
    for length in [0, 5, 40, 100, text.len() / 2, text.len() - 2] {
        refused(&text[..length], 2);
    }
    let changed = text.replacen("\"updates\":49", "\"updates\":48", 1);
    assert_ne!(changed, text);
    assert_eq!(
        refused(&changed, 2),
        "learner's checkpoint: incomplete or changed; copy it again"
    );
    assert_eq!(
        refused(&text, 3),
        "tensor gru.weight_ih_l0: 24 numbers, must be 36 ([12, 3])"
    );
}
