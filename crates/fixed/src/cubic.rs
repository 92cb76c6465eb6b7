//! Cubic's window in whole numbers, as the guard keeps it (`cubic.h`).

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::native;

/// `struct headway_cubic`.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Cubic {
    cwnd: u64,
    ssthresh: u64,
    w_max: u64,
    epoch_ns: u64,
    reduced_ns: u64,
    k_ms: u64,
    w_est: u64,
    w_prior: u64,
}

impl Cubic {
    /// A Cubic with this window and ssthresh in packets. An ssthresh of 0 means that none is set.
    pub fn new(cwnd: u32, ssthresh: u32) -> Cubic {
        let mut cubic = Cubic::new_zeroed();
        native::headway_native_cubic_open(&mut cubic, cwnd, ssthresh);
        cubic
    }

    /// Packets were acknowledged.
    pub fn acked(&mut self, packets: u32, now_ns: u64, rtt_ns: u64) {
        native::headway_native_cubic_acked(self, packets, now_ns, rtt_ns);
    }

    /// A packet was lost.
    pub fn lose(&mut self, now_ns: u64, rtt_ns: u64) {
        native::headway_native_cubic_lose(self, now_ns, rtt_ns);
    }

    /// The retransmission timer ran out. While losses are being repaired this does not lower
    /// ssthresh again.
    pub fn time_out(&mut self, now_ns: u64, is_recovering: bool) {
        native::headway_native_cubic_time_out(self, now_ns, is_recovering.into());
    }

    /// Slow start is over.
    pub fn leave_slow_start(&mut self) {
        native::headway_native_cubic_leave_slow_start(self);
    }

    /// The ssthresh in packets; `None` before the first reduction.
    pub fn ssthresh(&self) -> Option<f64> {
        (self.ssthresh > 0).then_some(self.ssthresh as f64 / 256.0)
    }

    /// The window in packets.
    pub fn cwnd(&self) -> f64 {
        self.cwnd as f64 / 256.0
    }
}
