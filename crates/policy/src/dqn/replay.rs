//! A memory of decisions and what followed each.

use headway_cc::Stream;

/// A decision and what followed it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transition<'a> {
    /// The observation at the decision.
    pub state: &'a [f32],
    /// The index of the chosen action.
    pub action: usize,
    /// The reward of the interval that followed.
    pub reward: f32,
    /// The observation at that interval's end.
    pub next: &'a [f32],
}

/// The last transitions, up to a fixed number.
#[derive(Clone, Debug)]
pub struct Replay {
    width: usize,
    capacity: usize,
    /// The state and the next state of each transition, in turn.
    states: Vec<f32>,
    actions: Vec<usize>,
    rewards: Vec<f32>,
    /// Where the next transition goes once the memory is full.
    oldest: usize,
}

impl Replay {
    /// A memory for this many transitions with observations of this many values. Space is allocated
    /// as it fills.
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

    /// The number of transitions.
    pub fn len(&self) -> usize {
        self.actions.len()
    }

    /// Is the memory empty?
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Stores a transition; if the memory is full, it replaces the oldest.
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

    /// The transition at `index`, which is below [`len`](Self::len).
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

    /// Random indices of this many transitions, with repetition; none if the memory is empty.
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
        // Each is drawn 10,000 times, within five standard deviations of 87.
        assert!(
            drawn[..2] == [0, 0] && drawn[2..].iter().all(|n| (9565..10_435).contains(n)),
            "{drawn:?}"
        );
    }
}
