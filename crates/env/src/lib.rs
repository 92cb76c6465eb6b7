//! Environments: simulations that stop wherever a learned controller is to decide.
//!
//! An [`Episode`] is one simulation of a scenario that its seed has drawn, with one or several
//! `Learned<External>` flows; [`Environments`] are many of them side by side, each of which begins
//! its next episode as one ends. What a decision brought is told as raw [`measurements`]; rewards
//! are Python's.

mod environments;
mod episode;
mod external;
mod lesson;
mod measurement;
mod spec;

pub use environments::{Autoreset, Environments, Outputs};
pub use episode::{End, Episode, Pause};
pub use lesson::lesson;
pub use measurement::{Measurement, measurements, width};
pub use spec::{EnvError, EnvSpec, Start, Task};
