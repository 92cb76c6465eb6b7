//! Learning in use, against PyTorch's step, against values worked by hand, and in the simulator.

use crate::numbers::{network, numbers};
use std::collections::BTreeMap;
use std::sync::mpsc::sync_channel;

use headway_cc::testing::setup;
use headway_cc::{Duration, Probe, Stream, Time};
use headway_policy::dqn::{DqnPolicy, DqnSpec, Learner, Replay, Step, TdLoss, Transition};
use headway_policy::nn::{NetSpec, Network};
use headway_policy::{ActionSpec, Interval, Policy, Record, RttSummary, Shaping, Utility};
use serde::Deserialize;
use serde_json::json;

fn net(layers: &[usize]) -> NetSpec {
    let mut activations = vec!["relu"; layers.len() - 2];
    activations.push("identity");
    let spec = json!({"kind": "mlp", "layers": layers, "activations": activations});
    serde_json::from_value(spec).expect("a network")
}

/// The gradient steps that scripts/nn_fixtures.py computed with PyTorch.
#[derive(Deserialize)]
struct Steps {
    net: NetSpec,
    settings: DqnSpec,
    batch: usize,
    losses: Vec<f32>,
    parameters: Vec<f32>,
}

/// Two steps on the same batch, with a copy into the target network between them: losses and
/// parameters.
#[test]
fn a_gradient_step_matches_pytorch() {
    let fixtures: serde_json::Value =
        serde_json::from_str(include_str!("fixtures/nn.json")).expect("the file is as written");
    let all = fixtures["dqn"].as_object().expect("several");
    assert_eq!(all.len(), 3);
    for (name, steps) in all {
        let Steps {
            net,
            settings,
            batch,
            losses,
            parameters,
        } = Steps::deserialize(steps).expect("the file is as written");
        let (inputs, outputs) = (net.inputs(), net.outputs());
        let states = numbers(5, batch * inputs, 2.0);
        let nexts = numbers(6, batch * inputs, 2.0);
        let rewards = numbers(11, batch, 2.0);
        let transitions = || {
            (states
                .chunks(inputs)
                .zip(nexts.chunks(inputs))
                .zip(&rewards)
                .enumerate())
            .map(|(n, ((state, next), reward))| Transition {
                state,
                action: n % outputs,
                reward: *reward,
                next,
            })
        };
        let mut learner = Learner::new(network(&net, 0), settings).expect("settings in range");
        for right in losses {
            let loss = learner.learn(transitions()).expect("a finite loss");
            assert!(
                (loss - right).abs() < 1e-5 * right.max(1.0),
                "{name}: {loss}, PyTorch {right}"
            );
        }
        let ours = learner.network();
        let tensors = ours.tensors(ours.parameters());
        let ours = tensors.iter().flat_map(|(_, _, values)| values);
        let off = ours.zip(&parameters).map(|(a, b)| (a - b).abs());
        let off = off.fold(0.0, f32::max);
        println!("{name}: off by {off:e}");
        assert!(off < 1e-5, "{name}: off by {off:e}");
        assert_eq!(
            tensors.iter().map(|t| t.2.len()).sum::<usize>(),
            parameters.len()
        );
    }
}

/// There are two states: action 0 stays, action 1 goes to the other. Staying in the second pays 1,
/// leaving the first 0.2. With gamma 0.5: V(2) = 1 / (1 - 0.5) = 2, so Q(2, stay) = 2 and Q(1, go)
/// = 0.2 + 0.5 x 2 = 1.2 = V(1); Q(1, stay) = 0.5 x 1.2 = 0.6 and Q(2, go) = 0.5 x 1.2 = 0.6.
#[test]
fn a_chain_of_two_states_is_learned() {
    const VALUES: [[f32; 2]; 2] = [[0.6, 1.2], [2.0, 0.6]];
    let states = [[1.0, 0.0], [0.0, 1.0]];
    let mut replay = Replay::new(100, 2);
    for (from, action) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let reward = [[0.0, 0.2], [1.0, 0.0]][from][action];
        replay.push(Transition {
            state: &states[from],
            action,
            reward,
            next: &states[from ^ action],
        });
    }
    for (layers, loss, double) in [
        (&[2, 2][..], TdLoss::Mse, false),
        (&[2, 16, 2], TdLoss::Huber, false),
        (&[2, 16, 2], TdLoss::Huber, true),
    ] {
        let spec = DqnSpec {
            gamma: 0.5,
            learning_rate: 0.01,
            loss,
            double,
            target_every: 20,
            ..DqnSpec::default()
        };
        let mut learner = Learner::new(network(&net(layers), 1), spec).expect("settings in range");
        let mut random = Stream::new(1, "chain");
        for _ in 0..1500 {
            learner
                .learn(replay.draw(8, &mut random).map(|index| replay.get(index)))
                .expect("a finite loss");
        }
        for (state, right) in states.iter().zip(VALUES) {
            for (value, right) in values_of(learner.network(), state).iter().zip(right) {
                assert!(
                    (value - right).abs() < 0.02,
                    "{layers:?}, {loss:?}: {value}, not {right}"
                );
            }
        }
    }
}

/// An interval of 1 s in which this many packets of 1250 bytes (a hundred are 1 Mbit/s) arrived or
/// were lost.
fn second(delivered: u32, lost: u32, rtt_ms: f64, least_ms: u32) -> Interval {
    Interval {
        end: Time::ZERO,
        length: headway_cc::Duration::from_secs(1),
        delivered,
        lost,
        rtt: RttSummary {
            mean_us: rtt_ms * 1e3,
            ..RttSummary::default()
        },
        min_rtt_10s_us: least_ms * 1000,
        min_rtt_10s_age: Duration::ZERO,
        latest: Record {
            mss: 1250,
            ..Record::default()
        },
        ..Interval::default()
    }
}

/// Eq. 7 by hand; tests/test_rewards.py has the same numbers for the reward `owl`.
#[test]
fn the_utility_follows_eq_7() {
    let half = Utility {
        delta: 0.5,
        beta: 0.5,
        shaping: Shaping::default(),
    };
    let loss_only = Utility { beta: 0.0, ..half };
    let ln_2 = std::f64::consts::LN_2;
    for (utility, interval, right) in [
        (half, second(1200, 0, 40.0, 40), 6.0),
        // The value is 12 - 6 / 0.9 - 0.5 ln 2.
        (
            half,
            second(1200, 133, 80.0, 40),
            12.0 - 6.0 * 1333.0 / 1200.0 - 0.5 * ln_2,
        ),
        (loss_only, second(1200, 0, 80.0, 40), 6.0),
        (half, second(0, 0, 160.0, 40), -ln_2),
        // All is lost: the rate is 0 Mbit/s, so the divisor does not matter.
        (half, second(0, 50, 0.0, 0), 0.0),
        // Half is lost: the utility is 0 at delta 0.5.
        (half, second(600, 600, 40.0, 40), 0.0),
        // More than half is lost: the utility is negative.
        (half, second(300, 900, 40.0, 40), 3.0 - 0.5 * 3.0 * 4.0),
    ] {
        let ours = utility.of(&interval).expect("a unit");
        assert!((ours - right).abs() < 1e-9, "{ours}, not {right}");
    }
}

/// The reward `owl` is shaped as in training. 4 Mbit/s is the flow's largest throughput.
#[test]
fn the_rate_is_shaped_as_in_training() {
    let utility = Utility {
        delta: 0.4,
        beta: 0.5,
        shaping: Shaping {
            scale: 3.0,
            exponent: 0.5,
            regret: 1.0,
        },
    };
    let interval = Interval {
        max_throughput: 400.0,
        ..second(100, 100, 80.0, 40)
    };
    // The root of 4 is 2, so 1 Mbit/s counts 1.5 and 4 count 6: 1.5 - 0.4 x 3 - 0.5 ln 2 - 0.6 x 6
    let right = 1.5 - 1.2 - 0.5 * std::f64::consts::LN_2 - 3.6;
    let ours = utility.of(&interval).expect("a unit");
    assert!((ours - right).abs() < 1e-9);
    // In the first 20 ms the largest throughput is not known.
    let early = Interval {
        max_throughput: 0.0,
        ..interval
    };
    assert_eq!(utility.of(&early), None);
}

/// The Q-values of a state.
fn values_of(network: &Network, state: &[f32]) -> Vec<f32> {
    let mut values = vec![0.0; network.spec().outputs()];
    network.forward(&mut network.state(), state, &mut values);
    values
}

fn learning(network: Network, spec: DqnSpec, epsilon: f64) -> DqnPolicy {
    let utility = Utility {
        delta: 0.5,
        beta: 0.5,
        shaping: Shaping::default(),
    };
    DqnPolicy::new(network, spec, utility, epsilon, &setup()).expect("settings in range")
}

/// The reward depends on the rate, and one action leads to the higher rate. The policy comes to
/// prefer it.
#[test]
fn the_learner_comes_to_prefer_rewarded_actions() {
    let spec = DqnSpec {
        gamma: 0.0,
        learning_rate: 0.01,
        warmup: 50,
        every: 1,
        ..DqnSpec::default()
    };
    let mut policy = learning(network(&net(&[1, 8, 3]), 0), spec, 0.2);
    let mut answers = Vec::new();
    let mut interval = Interval::default();
    for _ in 0..2000 {
        let answer = policy.decide(&[1.0], &interval).expect("an answer").action;
        // Eq. 7 of 1, 2 or 4 Mbit/s without loss or queue is half of the rate.
        interval = second(100 << (answer as u32), 0, 40.0, 40);
        answers.push(answer);
    }
    let best = |of: &[f32]| of.iter().filter(|a| **a == 2.0).count();
    assert!(best(&answers[..50]) < 45, "{}", best(&answers[..50]));
    // A share of 0.8 + 0.2 / 3 is expected.
    assert!(best(&answers[1500..]) > 400, "{}", best(&answers[1500..]));
    let values = values_of(policy.network(), &[1.0]);
    for (value, right) in values.iter().zip([0.5, 1.0, 2.0]) {
        assert!((value - right).abs() < 0.1, "{values:?}");
    }
}

#[test]
fn without_exploration_and_before_warm_up_it_answers_as_the_network() {
    let network = network(&net(&[4, 8, 3]), 3);
    let action = ActionSpec::Discrete {
        effect: headway_policy::Effect::AddCwnd,
        choices: vec![-1.0, 0.0, 1.0],
    };
    let mut policy = learning(network.clone(), DqnSpec::default(), 0.0);
    let mut values = vec![0.0; 3];
    for observation in numbers(8, 400, 2.0).chunks(4) {
        network.forward(&mut network.state(), observation, &mut values);
        let answer = policy.decide(observation, &second(100, 0, 40.0, 40));
        assert_eq!(answer, Some(action.choose(&values).into()));
    }
}

#[test]
fn the_same_seed_learns_bit_identically() {
    let run = |epsilon| {
        let spec = DqnSpec {
            warmup: 20,
            every: 2,
            ..DqnSpec::default()
        };
        let mut policy = learning(network(&net(&[4, 8, 3]), 3), spec, epsilon);
        for (n, observation) in numbers(8, 2000, 2.0).chunks(4).enumerate() {
            policy.decide(observation, &second(100 + n as u32, n as u32 % 7, 50.0, 40));
        }
        assert!(policy.steps() > 200 && policy.is_learning());
        let parameters = policy.network().parameters();
        parameters.iter().map(|p| p.to_bits()).collect::<Vec<u32>>()
    };
    assert_eq!(run(0.1), run(0.1));
    assert_ne!(run(0.1), run(0.5));
}

/// Without random actions and with one transition, a late step on another thread equals the step
/// that the policy would have taken at once.
#[test]
fn a_step_on_another_thread_takes_effect_once_done() {
    let spec = DqnSpec {
        warmup: 1,
        every: 1,
        batch: 1,
        learning_rate: 0.01,
        ..DqnSpec::default()
    };
    let policy = || learning(network(&net(&[1, 8, 3]), 0), spec.clone(), 0.0);
    let answer = |policy: &mut DqnPolicy| {
        let answer = policy.decide(&[1.0], &second(100, 0, 40.0, 40));
        assert!(answer.is_some(), "it answers at once");
        policy.steps()
    };
    let (thread, steps) = sync_channel::<Step>(1);
    let (mut waits, mut other) = (policy(), policy());
    waits.step_on_thread(&thread);
    let begin = waits.network().parameters().to_vec();
    // No thread takes the step.
    assert_eq!([(); 10].map(|()| answer(&mut waits)), [0; 10]);
    assert_eq!(waits.network().parameters(), begin);
    assert_eq!([(); 2].map(|()| answer(&mut other)), [0, 1]);
    let step = steps.try_recv().expect("a step was sent");
    assert!(steps.try_recv().is_err(), "one at a time");
    take(step);
    assert_eq!(answer(&mut waits), 1);
    assert_ne!(other.network().parameters(), begin);
    assert_eq!(waits.network().parameters(), other.network().parameters());
    // What followed eight decisions waited for the trainer.
    let step = steps.try_recv().expect("the next step was sent");
    assert_eq!(step.transitions(), 1 + 8 + 1);
    // More than 256 transitions are dropped and counted.
    (0..300).for_each(|_| _ = answer(&mut waits));
    take(step);
    answer(&mut waits);
    let step = steps.try_recv().expect("the next step was sent");
    assert_eq!(step.transitions(), 10 + 256 + 1);
    let probed = probed(&waits);
    assert_eq!(probed["dropped_transitions"], f64::from(300 - 256));
    assert_eq!(probed["skipped_updates"], f64::from(8 + 300));
}

/// Takes a step as the other thread does.
fn take(mut step: Step) {
    step.take();
    step.give_back();
}

/// The other thread's result may be unusable, too.
#[test]
fn a_loss_from_another_thread_that_is_not_finite_ends_the_learning() {
    let spec = DqnSpec {
        warmup: 1,
        every: 1,
        batch: 1,
        capacity: 1,
        ..DqnSpec::default()
    };
    let mut policy = learning(network(&net(&[1, 8, 3]), 0), spec, 0.0);
    let (thread, steps) = sync_channel::<Step>(1);
    policy.step_on_thread(&thread);
    let mut bad = second(100, 0, 40.0, 40);
    bad.rtt.mean_us = f64::INFINITY;
    for _ in 0..2 {
        policy.decide(&[1.0], &bad).expect("it answers");
    }
    let before = policy.network().parameters().to_vec();
    take(steps.try_recv().expect("a step"));
    assert!(policy.is_learning());
    policy.decide(&[1.0], &bad).expect("it answers on");
    assert!(!policy.is_learning());
    assert_eq!(
        (policy.network().parameters(), policy.steps()),
        (&before[..], 0)
    );
}

/// The policy's named values.
fn probed(policy: &DqnPolicy) -> BTreeMap<&'static str, f64> {
    #[derive(Default)]
    struct Values(BTreeMap<&'static str, f64>);
    impl Probe for Values {
        fn value(&mut self, name: &'static str, value: f64) {
            self.0.insert(name, value);
        }
    }
    let mut values = Values::default();
    policy.probe(&mut values);
    values.0
}

#[test]
fn decisions_go_on_if_the_other_thread_has_ended() {
    let spec = DqnSpec {
        warmup: 1,
        every: 1,
        ..DqnSpec::default()
    };
    let decide = |policy: &mut DqnPolicy| {
        let answer = policy.decide(&[1.0], &second(100, 0, 40.0, 40));
        answer.expect("it answers on").action
    };
    // The thread is busy with other flows' steps first, and then takes this one's.
    let (thread, steps) = sync_channel(1);
    let mut policies = [0, 1].map(|n| {
        let mut policy = learning(network(&net(&[1, 8, 3]), n), spec.clone(), 0.0);
        policy.step_on_thread(&thread);
        policy
    });
    for policy in &mut policies {
        (0..5).for_each(|_| _ = decide(policy));
    }
    assert!(policies.iter().all(DqnPolicy::is_learning));
    for policy in &mut policies {
        while let Ok(step) = steps.try_recv() {
            take(step);
        }
        decide(policy);
        while let Ok(step) = steps.try_recv() {
            take(step);
        }
        decide(policy);
        assert!(policy.steps() > 0);
    }
    // The thread ends with a step in hand.
    drop(steps);
    for policy in &mut policies {
        (0..3).for_each(|_| _ = decide(policy));
        assert!(decide(policy).is_finite() && !policy.is_learning());
    }
}

/// Learning ends, and the network as learned until then goes on deciding. No action is ever not
/// finite.
#[test]
fn numbers_that_are_not_finite_end_the_learning() {
    let spec = DqnSpec {
        warmup: 1,
        every: 1,
        batch: 1,
        capacity: 1,
        ..DqnSpec::default()
    };
    let mut policy = learning(network(&net(&[4, 8, 3]), 3), spec, 0.0);
    let fine = second(100, 0, 40.0, 40);
    for _ in 0..5 {
        assert!(
            policy
                .decide(&[0.5; 4], &fine)
                .expect("an answer")
                .action
                .is_finite()
        );
    }
    assert!(policy.is_learning());
    let before = policy.network().parameters().to_vec();
    let steps = policy.steps();
    // An impossible RTT.
    let bad = Interval {
        rtt: RttSummary {
            mean_us: f64::INFINITY,
            ..RttSummary::default()
        },
        ..fine
    };
    let answer = policy.decide(&[0.5; 4], &bad).expect("an answer").action;
    assert!(answer.is_finite() && !policy.is_learning());
    assert_eq!(policy.network().parameters(), before);
    for _ in 0..5 {
        assert_eq!(policy.decide(&[0.5; 4], &fine), Some(answer.into()));
    }
    assert_eq!(policy.steps(), steps);
    for wrong in [&[f32::NAN; 4][..], &[0.5; 3]] {
        assert!(
            policy
                .decide(wrong, &fine)
                .expect("an answer")
                .action
                .is_nan()
        );
    }
}

#[test]
fn settings_out_of_range_are_refused() {
    type Change = fn(&mut DqnSpec);
    let cases: [(Change, &str); 6] = [
        (|s| s.gamma = 1.0, "gamma is 1, must be 0 to below 1"),
        (
            |s| s.learning_rate = 0.0,
            "learning_rate is 0, must be above 0 to 1",
        ),
        (
            |s| s.reward.scale = f64::NAN,
            "reward: scale NaN, exponent 0, regret 0 must be above 0, 0 to 1, 0 to 1",
        ),
        (|s| s.batch = 0, "batch is 0, must be 1 to 1024"),
        (|s| s.capacity = 10, "capacity is 10, must be 32 to 1000000"),
        (|s| s.warmup = 20_000, "warmup is 20000, must be 1 to 10000"),
    ];
    for (change, says) in cases {
        let mut spec = DqnSpec::default();
        change(&mut spec);
        let error = Learner::new(network(&net(&[2, 2]), 0), spec).expect_err("refused");
        assert_eq!(error.to_string(), format!("online learning: {says}"));
    }
    assert_eq!(DqnSpec::default().check(), Ok(()));
    let gru = json!({"kind": "gru", "layers": [3, 4]});
    let gru: NetSpec = serde_json::from_value(gru).expect("a network");
    let error = Learner::new(network(&gru, 0), DqnSpec::default()).expect_err("refused");
    assert!(error.to_string().contains("must be an mlp"), "{error}");
}

/// In fallback Cubic causes what follows an answer, and also what follows the last such answer.
#[test]
fn a_decision_that_was_not_carried_out_is_not_learned_from() {
    let spec = DqnSpec {
        warmup: 1,
        every: 1,
        ..DqnSpec::default()
    };
    let steps = |tripped: [bool; 5]| {
        let mut policy = learning(network(&net(&[1, 8, 3]), 0), spec.clone(), 0.0);
        tripped.map(|is_tripped| {
            let mut interval = second(100, 0, 40.0, 40);
            interval.latest.flags = if is_tripped { Record::TRIPPED } else { 0 };
            policy.decide(&[1.0], &interval).expect("it answers on");
            policy.steps()
        })
    };
    assert_eq!(steps([false; 5]), [0, 1, 2, 3, 4]);
    assert_eq!(steps([true; 5]), [0; 5]);
    assert_eq!(steps([false, false, true, false, false]), [0, 1, 1, 1, 2]);
}

/// An answer that came too late, or during recovery, changed nothing.
#[test]
fn a_refused_answer_is_not_learned_from() {
    let spec = DqnSpec {
        warmup: 1,
        every: 1,
        ..DqnSpec::default()
    };
    let mut policy = learning(network(&net(&[1, 8, 3]), 0), spec, 0.0);
    let steps = [false, true, true, false, false].map(|is_refused| {
        policy
            .decide(&[1.0], &second(100, 0, 40.0, 40))
            .expect("it answers");
        if is_refused {
            policy.on_refused();
        }
        policy.steps()
    });
    assert_eq!(steps, [0, 1, 1, 1, 2]);
}
