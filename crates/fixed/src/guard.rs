//! The guard of a flow that a policy steers (`guard.h`).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct headway_limits`: what the guard allows.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Limits {
    /// Bytes a second.
    pub max_rate: u64,
    /// Packets.
    pub min_cwnd: u32,
    /// Packets.
    pub max_cwnd: u32,
    /// So many answers in a row that want larger windows or rates are too many.
    pub wild_answers: u32,
    /// An answer may take so long, ...
    pub answer_us: u32,
    /// ... or so many smoothed RTTs if that is longer, ...
    pub answer_rtts: u32,
    /// ... but never longer than this.
    pub answer_most_us: u32,
    /// What follows is judged over so long, and two RTTs at least.
    pub epoch_us: u32,
    /// So many epochs in a row have to be bad.
    pub epochs: u32,
    /// Share of packets lost, in 1/65536.
    pub loss: u32,
    /// Smoothed over least RTT, in 1/256, ...
    pub inflation: u32,
    /// ... and so much above it.
    pub inflation_us: u32,
    /// Of utility, log2(rate) - weight * log2(RTT / least RTT), in 1/65536.
    pub margin: u32,
    /// In 1/65536.
    pub weight: u32,
    /// The first probation; each further one is twice as long, ...
    pub probation_ms: u32,
    /// ... so many times at most.
    pub doublings: u32,
    /// For each such time that it behaves one doubling is forgotten.
    pub pardon_ms: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_rate: 12_500_000_000,
            min_cwnd: 2,
            max_cwnd: 100_000,
            wild_answers: 32,
            answer_us: 100_000,
            answer_rtts: 2,
            answer_most_us: 500_000,
            epoch_us: 100_000,
            epochs: 5,
            loss: 65536 / 5,
            inflation: 4 * 256,
            inflation_us: 50_000,
            margin: 65536,
            weight: 65536 / 2,
            probation_ms: 10_000,
            doublings: 5,
            pardon_ms: 600_000,
        }
    }
}
