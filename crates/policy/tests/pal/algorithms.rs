//! Compares when weights are taken over and gradients are applied with Algorithms 3 and 4 as
//! printed.

use std::collections::VecDeque;

use headway_cc::Stream;

use crate::task::{agent, observation, plain, weights};

/// The packets that an action of 1 adds to the window.
const SCALE: f32 = 2.0;

/// The lists of Algorithm 1, in bytes, and two functions of them.
#[derive(Default)]
struct Printed {
    windows: Vec<f32>,
    actions: Vec<f32>,
    sent: Vec<f32>,
    rewards: usize,
}

impl Printed {
    /// Algorithm 3. (Its line 7 has `i + 1 >= 10`, but must mean the number of steps since `i`. Its
    /// line 12 has `#(l_windows) - 1`, but must mean the step that is about to be taken: as printed
    /// the loop of line 3 does not end.)
    fn update_weights(&self) -> bool {
        let mut i = 0;
        while i < self.actions.len() {
            let mut w = (self.windows[i] + self.actions[i]).floor();
            let is_last = |j: &usize| {
                w -= self.sent[*j];
                w <= 0.0 && j - i + 1 >= 10
            };
            match (i..self.actions.len()).find(is_last) {
                Some(j) => i = j + 1,
                None => return false,
            }
        }
        true
    }

    /// Algorithm 4: the number of steps that make a gradient, if they are rewarded.
    fn enough_rewards(&self) -> Option<usize> {
        if self.actions.is_empty() {
            return None;
        }
        let mut w = (self.windows[0] + self.actions[0]).floor();
        for i in 0..self.rewards {
            w -= self.sent[i];
            if w <= 0.0 && i + 1 >= 10 {
                return Some(i + 1);
            }
        }
        None
    }

    fn remove(&mut self, steps: usize) {
        self.windows.drain(..steps);
        self.actions.drain(..steps);
        self.sent.drain(..steps);
        self.rewards -= steps;
    }
}

#[test]
fn segments_follow_algorithms_3_and_4() {
    let mut spec = plain(10);
    spec.longest = 1000;
    spec.action_scale = SCALE;
    let mut weights = weights(spec);
    let mut agent = agent(&weights);
    let mut random = Stream::new(3, "packets");
    let mut printed = Printed::default();
    // Feedback comes in the order of sending, 30 partial actions late.
    let mut under_way: VecDeque<(u64, usize)> = VecDeque::new();
    let (mut awaited, mut window, mut updates) = (Vec::<usize>::new(), 12.0_f32, 0);
    let mut at_update = 0;
    for step in 0..4000 {
        // Algorithm 4 waits for the step after the last, whose value continues the average.
        while let Some(steps) = printed.enough_rewards() {
            printed.remove(steps);
            awaited.drain(..steps);
            at_update += steps;
            updates += 1;
        }
        let takes_over = printed.update_weights();
        let change = SCALE
            * agent
                .act(
                    &mut weights,
                    &observation(step, 0.0),
                    window,
                    f32::INFINITY,
                    [1.0],
                )
                .expect("finite");
        assert_eq!(weights.updates(), updates, "step {step}");
        assert_eq!(agent.awaited(), printed.actions.len() + 1, "step {step}");
        assert_eq!(agent.began_segment(), takes_over, "step {step}");
        printed.windows.push(window);
        printed.actions.push(change);
        window = (window + change + random.normal() as f32).clamp(1.0, 60.0);
        // The action causes zero, one or two packets.
        let packets = random.below(3) as usize;
        printed.sent.push(packets as f32);
        awaited.push(packets);
        for _ in 0..packets {
            under_way.push_back((agent.partial_action(1.0), at_update + awaited.len() - 1));
        }
        while under_way.len() > 30 {
            let (number, index) = under_way.pop_front().expect("an action is under way");
            agent.feedback(number, &[1.0]);
            awaited[index - at_update] -= 1;
        }
        // The number of leading actions whose last feedback has come. An action without partial
        // actions waits for none, but the newest action may still get some.
        let rewarded = awaited.iter().take_while(|open| **open == 0).count();
        printed.rewards = rewarded;
    }
    assert!(updates > 100, "{updates}");
}
