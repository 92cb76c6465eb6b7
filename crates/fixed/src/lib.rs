//! The helper-free C headers of `crates/kernel/bpf`, compiled natively: they run inside BPF and
//! outside it.
//!
//! Both sides compute the same bits, so what was measured in simulated time holds for the kernel's
//! flows.

mod cubic;
mod guard;
mod limits;
mod mlp;
mod native;
mod rate_agent;
pub mod vectors;

pub use cubic::Cubic;
pub use guard::{Carried, Guard, Reason, Verdict};
pub use limits::{LimitError, Limits};
pub use mlp::{HIDDEN1, HIDDEN2, INPUTS, Mlp, MlpValues};
pub use rate_agent::{FEATURES, HISTORY, Int8, RateAgent, RecordBytes};
