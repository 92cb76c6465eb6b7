//! The setup of a flow's controller.

use crate::{Bytes, Stream, Time};

/// What a controller knows of its flow when it is built.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The size of a full packet on the wire, the unit of windows.
    pub mss: Bytes,
    /// The initial window (RFC 6928: ten packets).
    pub initial_cwnd: Bytes,
    /// When the flow begins.
    pub start: Time,
    /// The seed of the controller's own [`Stream`]s. It differs between flows.
    pub seed: u64,
}

impl Setup {
    /// The default flow: packets of `mss` on the wire, an initial window of ten packets, a start at
    /// time zero.
    pub const fn new(mss: Bytes, seed: u64) -> Setup {
        Setup {
            mss,
            initial_cwnd: Bytes::new(10 * mss.get()),
            start: Time::ZERO,
            seed,
        }
    }

    /// The random stream of the controller's component `name` in this flow.
    pub fn stream(&self, name: &str) -> Stream {
        Stream::new(self.seed, name)
    }
}
