//! The fuzz targets. A target is one function of bytes, which panics if a promise is broken.
//! `crates/emu/tests/fuzz_corpus.rs` calls the same functions with the stored inputs, on stable
//! Rust.

mod controller;
mod guard;
mod model;
mod queue;
mod rate_agent;
mod scenario;
mod trace;
mod wire;

pub use controller::{controller, registry, spec};
pub use guard::guard;
pub use model::model;
pub use queue::queue;
pub use rate_agent::rate_agent;
pub use scenario::scenario;
pub use trace::{steps, trace};
pub use wire::wire;

/// A target's name and function.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 9] = [
    ("scenario", scenario),
    ("trace", trace),
    ("steps", steps),
    ("controller", controller),
    ("model", model),
    ("queue", queue),
    ("rate_agent", rate_agent),
    ("guard", guard),
    ("wire", wire),
];

/// Checks that an error is one line.
fn one_line(error: &dyn std::fmt::Display) {
    let text = error.to_string();
    let printable = text.chars().all(|c| !c.is_control());
    assert!(printable && !text.is_empty(), "not one line: {text:?}");
}

/// Takes numbers from the front of the input. It gives zeros once the input is used up.
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let (head, tail) = self.0.split_at(N.min(self.0.len()));
        self.0 = tail;
        let mut array = [0; N];
        array[..head.len()].copy_from_slice(head);
        array
    }

    /// A number from 0 to 1.
    fn share(&mut self) -> f64 {
        f64::from(u16::from_le_bytes(self.array())) / f64::from(u16::MAX)
    }
}
