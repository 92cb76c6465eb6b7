//! What runs inside BPF and outside it too: the helper-free C headers of `crates/kernel/bpf`,
//! compiled natively.
//!
//! Both sides compute the same bits, so what was measured in simulated time holds for the kernel's
//! flows.

mod cubic;
mod guard;
mod limits;
mod log2;
mod mlp;
mod native;
mod rate_agent;
pub mod vectors;

pub use cubic::Cubic;
pub use guard::{Guard, Reason, Verdict};
pub use limits::{LimitError, Limits};
pub use log2::log2;
pub use mlp::{HIDDEN1, HIDDEN2, INPUTS, Mlp, MlpValues};
pub use rate_agent::{FEATURES, HISTORY, Int8, RateAgent, RecordBytes};
