//! Partial Action Learning (Rax, §3.1 and Algorithms 1 to 4): actor-critic learning where an action
//! is answered late, in parts, and while other actions are outstanding.
//!
//! An action causes zero or more *partial actions* (here: packets that it lets out). Feedback
//! answers each of them, in any order. An [`Agent`] acts on every observation, and notes what each
//! action caused ([`partial_action`](Agent::partial_action)) and which feedback came
//! ([`feedback`](Agent::feedback)). An action's reward is the sum of its feedback, known when the
//! last part has come. About once a round (in congestion control, a round trip) the agent takes
//! over the newest [`Weights`] (Algorithm 3), and so begins a [segment](segment): steps that were
//! acted with the same weights. Once every action of a segment is rewarded, its gradient is applied
//! to the weights (Algorithm 4). Agents may share their weights, or have their own.
//!
//! This module knows nothing of congestion control. A [`Task`] says what the rewards are worth
//! together, and how far ahead to look. Where feedback is immediate and each action has one part,
//! this is advantage actor-critic (Mnih et al. 2016), which a test shows.

mod agent;
mod checkpoint;
mod gaussian;
mod nets;
mod segment;
mod spec;
mod weights;

pub use agent::Agent;
pub use checkpoint::Checkpoint;
pub use gaussian::Gaussian;
pub use spec::{Centre, PalSpec, Weighting};
pub use weights::{Diverged, Weights};

/// What an agent learns to do: it has `N` rewards, and says what they are worth together.
pub trait Task<const N: usize> {
    /// The utility of long-term averages of the rewards, measured or predicted (Rax Eq. 8).
    fn utility(&self, averages: &[f32; N]) -> f32;

    /// The weight of a step's own rewards in the average, above 0 to 1 (Rax Eq. 5). `window` units
    /// of partial actions may be in flight, and the averages are predicted to be `values`.
    fn gamma(&self, window: f32, values: &[f32; N]) -> f32;
}
