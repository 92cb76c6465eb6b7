//! Model folders: which are loaded, which are refused with which errors, and what a model then
//! does.

mod folder;
mod learner;
#[path = "../numbers/mod.rs"]
mod numbers;
mod owl;
mod refusals;
mod schemes;
