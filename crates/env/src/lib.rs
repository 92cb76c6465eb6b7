//! Environments: simulations that stop whenever a learned controller has to decide.
//!
//! An [`Episode`] is one simulation of a scenario that its seed has drawn, with one or several
//! `Learned<External>` flows. [`Environments`] are many of them side by side, each of which begins
//! its next episode when one ends. The result of a decision is a row of raw [`measurements`];
//! Python computes rewards from it.

mod environments;
mod episode;
mod external;
mod measurement;
mod spec;
mod training_flow;

pub use environments::{Autoreset, Environments, Outputs};
pub use episode::{End, Episode, Pause};
pub use measurement::{Measurement, measurements, width};
pub use spec::{EnvError, EnvSpec, Start, Task};
pub use training_flow::train_flow;
