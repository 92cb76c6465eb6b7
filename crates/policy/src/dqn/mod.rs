//! Deep Q-learning in use (Owl, Algorithm 1, lines 11 and 12): an agent that goes on learning from
//! what it decides.
//!
//! A [`DqnPolicy`] answers with the action of the largest Q-value, now and then with a random one;
//! keeps what followed in a [`Replay`] memory; and lets its [`Learner`] take gradient steps on
//! batches of that, towards targets of a second network that follows the first from time to time
//! (Mnih et al. 2015). All within [`crate::nn`]: the same seed gives the same bits. A gradient step
//! takes a hundred times as long as a decision, so that another thread may take it ([`Step`]): the
//! policy decides with the parameters before it until it is done.

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
