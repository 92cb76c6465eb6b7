//! Model folders: what is loaded, what is refused and how that is said, and what a model then does.

mod folder;
mod learner;
#[path = "../numbers/mod.rs"]
mod numbers;
mod owl;
mod refusals;
mod schemes;
