//! What runs inside BPF and outside it too: the helper-free C headers of `crates/kernel/bpf`, compiled natively.
//!
//! Both sides compute the same bits, so what was measured in simulated time holds for the kernel's flows.

mod guard;
mod log2;
pub use guard::Limits;
mod native;

pub use log2::log2;
