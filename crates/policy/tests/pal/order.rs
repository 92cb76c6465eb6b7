//! Feedback that comes late, in any order, or never; weights of one agent or of several; and their
//! cost.

use headway_cc::Stream;
use headway_policy::pal::{Agent, Diverged, Weights};

use crate::task::{Plain, agent, numbers, observation, plain, reward, weights};

/// Runs 40 rounds of 12 actions with zero to three partial actions each. Their feedback comes after
/// the round, in the order that `arrange` gives it.
fn learned(arrange: impl Fn(&mut Vec<(u64, f32)>)) -> Vec<f32> {
    let mut weights = weights(plain(12));
    let mut agent = agent(&weights);
    let mut feedback: Vec<(u64, f32)> = Vec::new();
    for step in 0..480 {
        if step % 12 == 0 {
            arrange(&mut feedback);
            for (number, reward) in feedback.drain(..) {
                agent.feedback(number, &[reward]);
            }
        }
        let seen = observation(step, 0.0);
        let action = agent
            .act(&mut weights, &seen, 1.0, f32::INFINITY, [1.0])
            .expect("finite");
        for part in 0..step % 4 {
            // The sums of quarters and halves are exact in any order.
            let part = if part == 0 { 0.5 } else { 0.25 };
            let reward = if reward(seen, action) > 0.0 {
                part
            } else {
                0.0
            };
            feedback.push((agent.partial_action(1.0), reward));
        }
    }
    assert!(weights.updates() >= 38, "{}", weights.updates());
    numbers(&weights)
}

#[test]
fn feedback_may_come_in_any_order() {
    let in_order = learned(|_| {});
    assert_eq!(in_order, learned(|all| all.reverse()));
    assert_eq!(
        in_order,
        learned(|all| all.sort_by_key(|(n, _)| n.wrapping_mul(0x9e37_79b9) % 101))
    );
    let wrong = learned(|all| all.iter_mut().for_each(|(_, reward)| *reward = 0.25));
    assert_ne!(in_order, wrong, "it matters what comes");
}

/// There are two partial actions, and one is answered twice. The second answer does not count for
/// the other.
#[test]
fn each_partial_action_is_answered_once() {
    let mut weights = weights(plain(10));
    let mut agent = agent(&weights);
    let act = |agent: &mut Agent<Plain, 1>, weights: &mut Weights<1>, step| {
        let seen = observation(step, 0.0);
        agent
            .act(weights, &seen, 1.0, f32::INFINITY, [1.0])
            .expect("finite");
    };
    act(&mut agent, &mut weights, 0);
    let [first, second] = [(); 2].map(|()| agent.partial_action(1.0));
    agent.feedback(first, &[0.0]);
    agent.feedback(first, &[1.0]);
    for step in 1..12 {
        act(&mut agent, &mut weights, step);
    }
    assert_eq!(weights.updates(), 0, "the second is awaited");
    agent.feedback(second, &[1.0]);
    act(&mut agent, &mut weights, 12);
    assert_eq!(weights.updates(), 1);
}

/// An action without partial actions has no reward to wait for. Its utility is that of what
/// follows.
#[test]
fn an_action_without_packets_is_allowed() {
    let mut weights = weights(plain(10));
    let mut agent = agent(&weights);
    for step in 0..21 {
        agent
            .act(
                &mut weights,
                &observation(step, 0.0),
                1.0,
                f32::INFINITY,
                [1.0],
            )
            .expect("finite");
    }
    // Nothing was caused, so no round passed, but a segment has at most ten steps.
    assert_eq!((weights.updates(), agent.awaited()), (2, 1));
}

/// A window that has outgrown what the path returns is still learned from once a round trip.
#[test]
fn a_segment_lasts_at_most_one_round() {
    let updates = |round| {
        let mut spec = plain(10);
        spec.longest = 1000;
        let mut weights = weights(spec);
        let mut agent = agent(&weights);
        for step in 0..101 {
            agent
                .act(&mut weights, &observation(step, 0.0), 500.0, round, [1.0])
                .expect("finite");
            let number = agent.partial_action(1.0);
            agent.feedback(number, &[1.0]);
        }
        weights.updates()
    };
    assert_eq!([updates(f32::INFINITY), updates(20.0)], [0, 5]);
}

/// Every second partial action is never answered. What waits is bounded and dropped in the end, and
/// its feedback may still come. After some time nothing is allocated.
#[test]
fn overdue_feedback_is_dropped() {
    let mut weights = weights(plain(10));
    let mut agent = agent(&weights);
    let mut run = |from: usize, steps: usize, is_answered: bool| {
        for step in from..from + steps {
            agent
                .act(
                    &mut weights,
                    &observation(step, 0.0),
                    1.0,
                    f32::INFINITY,
                    [1.0],
                )
                .expect("finite");
            let number = agent.partial_action(1.0);
            if is_answered || step % 2 == 0 {
                agent.feedback(number, &[1.0]);
                // This is a second answer, and one for an old partial action. Both are ignored.
                agent.feedback(number, &[1000.0]);
                agent.feedback(number.saturating_sub(501), &[0.0]);
            }
        }
        (weights.updates(), agent.awaited(), agent.forgotten())
    };
    let most = plain(10).most_awaited * 10;
    let (updates, awaited, forgotten) = run(0, 2000, false);
    assert_eq!((updates, awaited + forgotten as usize), (0, 2000));
    assert!(awaited <= most, "{awaited}");
    let (updates, ..) = run(2000, 1000, true);
    assert!(updates > 50, "{updates}");
    let cost = allocation_counter::measure(|| {
        run(3000, 1000, true);
        run(4000, 1000, false);
        run(5000, 1000, true);
    });
    assert_eq!(cost.count_total, 0);
}

/// Without release, a flow whose window was large once would keep that memory for its whole life.
#[test]
fn memory_of_long_segments_is_released() {
    let mut spec = plain(10);
    spec.longest = 1000;
    let mut weights = weights(spec);
    let mut agent = agent(&weights);
    let mut run = |window: f32| {
        let mut numbers = Vec::with_capacity(16 * 1000);
        for step in 0..16 * window as usize {
            agent
                .act(&mut weights, &observation(step, 0.0), window, window, [1.0])
                .expect("finite");
            numbers.push(agent.partial_action(1.0));
        }
        for number in numbers {
            agent.feedback(number, &[1.0]);
        }
    };
    run(20.0);
    let cost = allocation_counter::measure(|| {
        run(1000.0);
        run(20.0);
    });
    let most = cost.bytes_max as f64 / 1e6;
    let left = cost.bytes_current as f64 / 1e6;
    assert!(most > 4.0, "{most} MB were taken");
    assert!(left < 1.0, "{left} of {most} MB are left");
}

#[test]
fn agents_can_share_weights() {
    let mut weights = weights(plain(10));
    let mut agents: Vec<Agent<Plain, 1>> = (0..3)
        .map(|n| Agent::new(Plain, &weights, Stream::new(n, "actions")))
        .collect();
    let mut earned = Vec::new();
    for step in 0..3000 {
        for agent in &mut agents {
            let seen = observation(step, 0.0);
            let action = agent
                .act(&mut weights, &seen, 1.0, f32::INFINITY, [1.0])
                .expect("finite");
            let number = agent.partial_action(1.0);
            agent.feedback(number, &[reward(seen, action)]);
            earned.push(reward(seen, action));
        }
    }
    assert_eq!(weights.updates(), 3 * 299);
    let mean = |rewards: &[f32]| rewards.iter().sum::<f32>() / rewards.len() as f32;
    let (before, after) = (mean(&earned[..600]), mean(&earned[8400..]));
    assert!(after > before + 0.1, "{before} to {after}");
}

/// What one agent learns, another uses from its next segment on.
#[test]
fn an_agent_takes_over_what_another_has_learned() {
    let mut weights = weights(plain(10));
    let [mut learner, mut other] =
        [1, 2].map(|n| Agent::new(Plain, &weights, Stream::new(n, "actions")));
    let mut apart = other.clone();
    let mut still = weights.clone();
    let act = |agent: &mut Agent<Plain, 1>, weights: &mut Weights<1>, step| {
        let seen = observation(step, 0.0);
        let action = agent
            .act(weights, &seen, 1.0, f32::INFINITY, [1.0])
            .expect("finite");
        agent.partial_action(1.0);
        action
    };
    // The other agent's feedback does not come, so it changes nothing.
    for step in 0..20 {
        let action = act(&mut learner, &mut weights, step);
        learner.feedback(step as u64, &[reward(observation(step, 0.0), action)]);
        let [with, without] = [
            act(&mut other, &mut weights, step),
            act(&mut apart, &mut still, step),
        ];
        // Its second segment begins with what the learner's first segment has taught.
        assert_eq!(with == without, step < 10, "step {step}");
    }
    assert_eq!((weights.updates(), still.updates()), (1, 0));
}

#[test]
fn non_finite_weights_are_detected() {
    let run = |reward: f32, weights: &mut Weights<1>| {
        let mut agent = agent(weights);
        for step in 0..30 {
            agent.act(weights, &observation(step, 0.0), 1.0, f32::INFINITY, [1.0])?;
            let number = agent.partial_action(1.0);
            agent.feedback(number, &[reward]);
        }
        Ok(())
    };
    for reward in [f32::NAN, f32::INFINITY, 1e30] {
        assert_eq!(
            run(reward, &mut weights(plain(10))),
            Err(Diverged),
            "{reward}"
        );
    }
    let mut spec = plain(10);
    spec.largest_norm = 0.1;
    assert_eq!(run(1.0, &mut weights(spec)), Err(Diverged));
    assert_eq!(run(1.0, &mut weights(plain(10))), Ok(()));
}
