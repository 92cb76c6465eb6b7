//! What a controller is told of its flow.

use crate::{Bytes, Stream, Time};

/// What a controller is told of its flow when it is built.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The size of a full packet on the wire, the unit of windows.
    pub mss: Bytes,
    /// The window that a flow begins with (RFC 6928: ten packets).
    pub initial_cwnd: Bytes,
    /// When the flow begins.
    pub start: Time,
    /// Seeds the controller's own [`Stream`]s; differs from flow to flow.
    pub seed: u64,
}

impl Setup {
    /// The usual flow: `mss` on the wire, ten packets to begin with, from time zero on.
    pub const fn new(mss: Bytes, seed: u64) -> Setup {
        Setup {
            mss,
            initial_cwnd: Bytes::new(10 * mss.get()),
            start: Time::ZERO,
            seed,
        }
    }

    /// This flow's stream for the controller's component `name`.
    pub fn stream(&self, name: &str) -> Stream {
        Stream::new(self.seed, name)
    }
}
