//! What followed which decision.

use headway_cc::Stream;

/// A decision and what came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transition<'a> {
    /// What was observed.
    pub state: &'a [f32],
    /// The index of the action that was chosen.
    pub action: usize,
    /// The reward of the interval that followed.
    pub reward: f32,
    /// What was observed at its end.
    pub next: &'a [f32],
}

/// The last transitions, a fixed number at most.
#[derive(Clone, Debug)]
pub struct Replay {
    width: usize,
    capacity: usize,
    /// State and next state of each, one after the other.
    states: Vec<f32>,
    actions: Vec<usize>,
    rewards: Vec<f32>,
    /// Where the next one goes once it is full.
    oldest: usize,
}

impl Replay {
    /// A memory of this number of transitions, whose observations have this number of values. Room
    /// is taken as it fills.
    pub fn new(capacity: usize, width: usize) -> Replay {
        Replay {
            width,
            capacity,
            states: Vec::new(),
            actions: Vec::new(),
            rewards: Vec::new(),
            oldest: 0,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.actions.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Keeps one more; the oldest goes if there is no room.
    ///
    /// # Panics
    /// If an observation has another size.
    pub fn push(&mut self, transition: Transition<'_>) {
        let Transition {
            state,
            action,
            reward,
            next,
        } = transition;
        assert_eq!(
            (state.len(), next.len()),
            (self.width, self.width),
            "numbers of an observation"
        );
        if self.len() < self.capacity {
            self.states.extend(state.iter().chain(next));
            self.actions.push(action);
            self.rewards.push(reward);
            return;
        }
        let row = &mut self.states[self.oldest * 2 * self.width..][..2 * self.width];
        row[..self.width].copy_from_slice(state);
        row[self.width..].copy_from_slice(next);
        (self.actions[self.oldest], self.rewards[self.oldest]) = (action, reward);
        self.oldest = (self.oldest + 1) % self.capacity;
    }

    /// The one at `index`, below [`len`](Self::len).
    pub fn get(&self, index: usize) -> Transition<'_> {
        let row = &self.states[index * 2 * self.width..][..2 * self.width];
        let (state, next) = row.split_at(self.width);
        Transition {
            state,
            action: self.actions[index],
            reward: self.rewards[index],
            next,
        }
    }

    /// The indices of this number of them at random, with repetition; none if there is none.
    pub fn draw(&self, count: usize, random: &mut Stream) -> impl Iterator<Item = usize> {
        let count = if self.is_empty() { 0 } else { count };
        (0..count).map(|_| random.below(self.len() as u64) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_replaced_first_and_all_are_drawn_equally() {
        let mut replay = Replay::new(4, 1);
        assert!(replay.is_empty());
        for n in 0..6 {
            replay.push(Transition {
                state: &[n as f32],
                action: n,
                reward: 10.0 * n as f32,
                next: &[n as f32 + 1.0],
            });
        }
        let kept: Vec<usize> = (0..replay.len()).map(|i| replay.get(i).action).collect();
        assert_eq!(kept, [4, 5, 2, 3]);
        let mut drawn = [0; 6];
        for index in replay.draw(40_000, &mut Stream::new(1, "replay")) {
            let one = replay.get(index);
            assert_eq!(one.state[0] + 1.0, one.next[0]);
            assert_eq!(
                (one.state[0], one.reward),
                (one.action as f32, 10.0 * one.action as f32)
            );
            drawn[one.action] += 1;
        }
        // 10,000 each, give or take five standard deviations of 87.
        assert!(
            drawn[..2] == [0, 0] && drawn[2..].iter().all(|n| (9565..10_435).contains(n)),
            "{drawn:?}"
        );
    }
}
