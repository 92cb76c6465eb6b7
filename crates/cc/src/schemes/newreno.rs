//! NewReno: additive increase, halving on loss (RFC 5681, RFC 6582).
//!
//! The transport detects losses with SACK-grade information and announces one congestion event
//! a flight, so the window inflation that RFC 6582 needs without SACK has no place here.

use crate::{
    Base, Bytes, CongestionControl, Control, Duration, Family, Feedback, Phase, Probe, Recovery, Rto,
    Scheme, Setup, Time,
};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "newreno",
    family: Family::Loss,
    summary: "additive increase, halving on loss",
    source: "RFC 5681, RFC 6582",
    needs: &[],
    params: &[],
    build: |setup, _| Box::new(NewReno::new(setup)),
    receiver: None,
};

/// The state of one NewReno flow.
#[derive(Debug)]
pub struct NewReno {
    mss: Bytes,
    cwnd: Bytes,
    ssthresh: Bytes,
    /// Bytes acknowledged in congestion avoidance that have not yet grown the window.
    acked: Bytes,
    /// (cwnd, ssthresh) before the last reduction, for [`Feedback::undo`].
    prior: (Bytes, Bytes),
    recovery: Recovery,
}

impl NewReno {
    /// A flow at its initial window, in slow start.
    pub fn new(setup: &Setup) -> NewReno {
        NewReno {
            mss: setup.mss,
            cwnd: setup.initial_cwnd,
            ssthresh: Bytes::MAX,
            acked: Bytes::ZERO,
            prior: (setup.initial_cwnd, Bytes::MAX),
            recovery: Recovery::Open,
        }
    }

    /// RFC 5681 §3.1: at most one packet an acknowledged packet in slow start,
    /// one packet a window in congestion avoidance.
    fn grow(&mut self, mut acked: Bytes) {
        if self.cwnd < self.ssthresh {
            let step = acked.min(self.ssthresh.saturating_sub(self.cwnd));
            self.cwnd += step;
            acked -= step;
        }
        self.acked += acked;
        while self.acked >= self.cwnd {
            self.acked -= self.cwnd;
            self.cwnd += self.mss;
        }
    }

    /// RFC 5681 §3.1 (4): half of what is in flight, two packets at least.
    fn reduce(&mut self, flight: Bytes) {
        self.prior = (self.cwnd, self.ssthresh);
        self.ssthresh = (flight / 2).max(self.mss * 2);
        self.acked = Bytes::ZERO;
    }
}

impl CongestionControl for NewReno {
    fn on_feedback(&mut self, f: &Feedback<'_>) {
        self.recovery = f.recovery;
        if f.undo {
            self.cwnd = self.cwnd.max(self.prior.0);
            self.ssthresh = self.ssthresh.max(self.prior.1);
        }
        if f.congestion.is_some() {
            // Application-limited flows reduce from what they used (RFC 5681 §3.1).
            self.reduce(f.prior_in_flight.min(self.cwnd));
            self.cwnd = self.ssthresh;
        } else if f.cwnd_limited && matches!(f.recovery, Recovery::Open | Recovery::Loss) {
            self.grow(f.acked_bytes);
        }
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        if rto.consecutive == 1 {
            self.reduce(rto.prior_in_flight);
        }
        self.cwnd = self.mss;
    }

    fn control(&self) -> Control {
        Control::window(self.cwnd)
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.value("ssthresh_bytes", self.ssthresh.as_f64());
    }
}

impl Base for NewReno {
    fn phase(&self) -> Phase {
        match self.recovery {
            Recovery::Open if self.cwnd < self.ssthresh => Phase::SlowStart,
            Recovery::Open => Phase::CongestionAvoidance,
            _ => Phase::Recovery,
        }
    }

    fn set_cwnd(&mut self, _: Time, _: Duration, cwnd: Bytes) {
        self.cwnd = cwnd.max(self.mss);
    }
}
