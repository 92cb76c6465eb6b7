//! Proportional rate reduction (RFC 6937, with Linux's bound).

use headway_cc::Bytes;

/// Spreads a window's reduction over one round trip: one packet for every `1/beta` delivered.
#[derive(Debug)]
pub(super) struct Prr {
    prior_cwnd: u64,
    ssthresh: u64,
    delivered: u64,
    out: u64,
    cwnd: u64,
}

impl Prr {
    /// Recovery begins: from `prior_cwnd` down to `ssthresh`.
    pub(super) fn new(prior_cwnd: Bytes, ssthresh: Bytes, in_flight: Bytes, mss: Bytes) -> Prr {
        Prr {
            prior_cwnd: prior_cwnd.get().max(1),
            ssthresh: ssthresh.get(),
            delivered: 0,
            out: 0,
            // The fast retransmit itself is always allowed.
            cwnd: (in_flight + mss).get(),
        }
    }

    /// RFC 6937 §3: how much may be in flight after this acknowledgement. `progress` says that the
    /// stream's beginning advanced and nothing more was lost.
    pub(super) fn on_ack(&mut self, acked: Bytes, in_flight: Bytes, mss: Bytes, progress: bool) {
        self.delivered += acked.get();
        let in_flight = in_flight.get();
        let send = if in_flight > self.ssthresh {
            (self.delivered * self.ssthresh)
                .div_ceil(self.prior_cwnd)
                .saturating_sub(self.out)
        } else {
            // Slow-start reduction bound: catch up by one packet an acknowledgement, no faster than
            // delivery.
            let mut limit = self.delivered.saturating_sub(self.out).max(acked.get());
            if progress {
                limit += mss.get();
            }
            limit.min(self.ssthresh - in_flight)
        };
        // The first retransmission is always allowed, and so is one while nothing is in flight: no
        // acknowledgement would come to allow it later.
        let minimum = if self.out == 0 || in_flight == 0 {
            mss.get()
        } else {
            0
        };
        self.cwnd = in_flight + send.max(minimum);
    }

    pub(super) fn on_sent(&mut self, size: Bytes) {
        self.out += size.get();
    }

    pub(super) fn cwnd(&self) -> Bytes {
        Bytes::new(self.cwnd)
    }
}
