//! Deep Q-learning in use (Owl, Algorithm 1, lines 11 and 12): an agent that goes on learning from
//! its own decisions.
//!
//! A [`DqnPolicy`] answers with the action of the largest Q-value, and sometimes with a random one.
//! It keeps what followed in a [`Replay`] memory. Its [`Learner`] takes gradient steps on batches
//! of these transitions, towards targets of a second network that is copied from the first now and
//! then (Mnih et al. 2015). All computation is within [`crate::nn`], so the same seed gives the
//! same bits. A gradient step takes a hundred times as long as a decision, so another thread can
//! take it ([`Step`]). Until it is done, the policy decides with the old parameters.

mod learner;
mod policy;
mod replay;
mod spec;
mod trainer;

pub use learner::Learner;
pub use policy::DqnPolicy;
pub use replay::{Replay, Transition};
pub use spec::{DqnSpec, TdLoss};
pub use trainer::{Step, Trainer};
