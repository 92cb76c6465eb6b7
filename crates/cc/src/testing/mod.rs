//! Shared code for tests of controllers: events, a small host, a bottleneck link, and the model
//! that drives any controller from raw bytes (property tests, fuzzing).

mod host;
mod link;
mod model;

pub use host::{Host, Readings};
pub use link::Link;
pub use model::drive;

use crate::{
    Bytes, Counters, Duration, Feedback, Recovery, Registry, Rto, RttStats, Selection, Setup, Time,
    schemes,
};

/// The packet size of these tests.
pub const MSS: Bytes = Bytes::new(1500);

/// The RTT of [`feedback`].
pub const RTT: Duration = Duration::from_millis(100);

/// A flow of [`MSS`] packets that begins with ten of them.
pub const fn setup() -> Setup {
    Setup::new(MSS, 1)
}

/// The scheme of this crate that `spec` names.
///
/// # Panics
/// If there is none.
pub fn select(spec: &str) -> Selection {
    Registry::new(schemes::SCHEMES)
        .select(spec)
        .expect("a scheme of this crate")
}

/// A feedback in steady state without events: window-limited, with [`RTT`] everywhere. A test
/// overrides what it is about: `Feedback { acked_bytes: MSS, ..feedback(now) }`.
pub fn feedback(now: Time) -> Feedback<'static> {
    Feedback {
        now,
        acked: &[],
        lost: &[],
        acked_bytes: Bytes::ZERO,
        lost_bytes: Bytes::ZERO,
        rtt: Some(RTT),
        rtt_stats: RttStats {
            latest: RTT,
            smoothed: RTT,
            variation: Duration::ZERO,
            min: RTT,
        },
        rate: None,
        counters: Counters::default(),
        in_flight: Bytes::ZERO,
        prior_in_flight: Bytes::ZERO,
        largest_acked: 0,
        next_number: 0,
        cwnd_limited: true,
        app_limited: false,
        recovery: Recovery::Open,
        congestion: None,
        undo: false,
        message: &[],
    }
}

/// A timeout, the `consecutive`-th in a row, with `packets` in flight.
pub fn rto(now: Time, packets: u64, consecutive: u32) -> Rto<'static> {
    Rto {
        now,
        lost: &[],
        prior_in_flight: MSS * packets,
        consecutive,
        next_number: 0,
    }
}
