//! NewReno: additive increase, halving on loss (RFC 5681, RFC 6582), with optional ECN (RFC 3168).
//!
//! The transport detects losses as with SACK, and reports one congestion event a flight. So the
//! window inflation that RFC 6582 needs without SACK is left out.

use crate::{
    Base, Bytes, Congestion, CongestionControl, Control, Duration, ECN, EcnUse, Family, Feedback,
    Phase, Probe, Recovery, Rto, Scheme, Setup, Stamp, Time,
};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "newreno",
    family: Family::Loss,
    summary: "additive increase, halving on loss",
    source: "RFC 5681, RFC 6582, RFC 3168",
    deviations: &[
        "The window is not inflated by duplicate acknowledgements (RFC 6582): the transport finds losses as with SACK.",
        "Retransmissions can carry ECT, as in QUIC (RFC 9000 §13.4) and unlike RFC 3168 §6.1.5, because they are packets like any other.",
        "`ecn=abe` reacts to a mark in slow start as it does later: RFC 8511 can be read both ways.",
    ],
    needs: &[],
    params: &[ECN],
    build: |setup, values| Box::new(NewReno::new(setup, EcnUse::of(values))),
    receiver: None,
    router: None,
};

/// The state of one NewReno flow.
#[derive(Debug)]
pub struct NewReno {
    mss: Bytes,
    initial_cwnd: Bytes,
    ecn: EcnUse,
    pub(super) cwnd: Bytes,
    pub(super) ssthresh: Bytes,
    /// Bytes that were acknowledged in congestion avoidance and have not grown the window yet.
    acked: Bytes,
    /// cwnd and ssthresh before the last reduction, for [`Feedback::undo`].
    undo: Option<(Bytes, Bytes)>,
    recovery: Recovery,
    /// Does a policy steer congestion avoidance?
    is_held: bool,
}

impl NewReno {
    /// The factor of the window on a mark that reduces less than a loss (RFC 8511 §3.1).
    const BETA_ECN: f64 = 0.8;

    /// A flow at its initial window, in slow start.
    pub fn new(setup: &Setup, ecn: EcnUse) -> NewReno {
        NewReno {
            mss: setup.mss,
            initial_cwnd: setup.initial_cwnd,
            ecn,
            cwnd: setup.initial_cwnd,
            ssthresh: Bytes::MAX,
            acked: Bytes::ZERO,
            undo: None,
            recovery: Recovery::Open,
            is_held: false,
        }
    }

    /// RFC 5681 §3.1: grows by at most one packet an acknowledged packet in slow start, and by one
    /// packet a window in congestion avoidance.
    fn grow(&mut self, mut acked: Bytes) {
        if self.cwnd < self.ssthresh {
            let step = acked.min(self.ssthresh.saturating_sub(self.cwnd));
            self.cwnd += step;
            acked -= step;
        }
        if self.is_held {
            return;
        }
        self.acked += acked;
        while self.acked >= self.cwnd {
            self.acked -= self.cwnd;
            self.cwnd += self.mss;
        }
    }

    /// RFC 5681 §3.1 (4): leaves half of what was in flight, which may be less than was allowed,
    /// but at least two packets. RFC 3168 §6.1.2: a mark does the same.
    fn reduce(&mut self, flight: Bytes, sign: Congestion) {
        self.undo = Some((self.cwnd, self.ssthresh));
        let used = flight.min(self.cwnd);
        let left = if self.ecn.spares(sign) {
            used.mul_f64(Self::BETA_ECN)
        } else {
            used / 2
        };
        self.ssthresh = left.max(self.mss * 2);
        self.acked = Bytes::ZERO;
    }
}

impl CongestionControl for NewReno {
    fn on_feedback(&mut self, f: &Feedback<'_>) {
        self.recovery = f.recovery;
        if f.undo
            && let Some((cwnd, ssthresh)) = self.undo.take()
        {
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = self.ssthresh.max(ssthresh);
        }
        if let Some(sign) = f.congestion {
            self.reduce(f.prior_in_flight, sign);
            self.cwnd = self.ssthresh;
        } else if f.cwnd_limited && matches!(f.recovery, Recovery::Open | Recovery::Loss) {
            self.grow(f.acked_bytes);
        }
    }

    /// RFC 5681 §3.1: the first timeout for a packet sets ssthresh, and later ones do not.
    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.recovery = Recovery::Loss;
        if rto.consecutive == 1 {
            self.reduce(rto.prior_in_flight, Congestion::Loss);
        }
        self.cwnd = self.mss;
    }

    /// RFC 5681 §4.1: after silence the window restarts from the initial one.
    fn on_idle(&mut self, _: Time, _: Duration) {
        self.cwnd = self.cwnd.min(self.initial_cwnd);
        self.acked = Bytes::ZERO;
    }

    fn control(&self) -> Control {
        Control::window(self.cwnd)
    }

    fn stamp(&self) -> Stamp {
        self.ecn.stamp()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.value("ssthresh_bytes", self.ssthresh.as_f64());
    }
}

impl Base for NewReno {
    fn phase(&self) -> Phase {
        match self.recovery {
            Recovery::Cwr | Recovery::Recovery | Recovery::Loss => Phase::Recovery,
            _ if self.cwnd < self.ssthresh => Phase::SlowStart,
            _ => Phase::CongestionAvoidance,
        }
    }

    fn ssthresh(&self) -> Bytes {
        self.ssthresh
    }

    /// Congestion avoidance continues, since slow start would undo a reduction.
    fn set_cwnd(&mut self, _: Time, _: Duration, cwnd: Bytes) {
        let chosen = cwnd.max(self.mss);
        if self.cwnd >= self.ssthresh {
            self.ssthresh = self.ssthresh.min(chosen);
        }
        self.cwnd = chosen;
        self.acked = Bytes::ZERO;
    }

    fn hold(&mut self) {
        self.is_held = true;
    }

    fn go_alone(&mut self, cwnd: Bytes, ssthresh: Bytes) {
        self.is_held = false;
        self.undo = None;
        if self.phase() != Phase::Recovery {
            self.cwnd = cwnd.max(self.mss);
            self.ssthresh = ssthresh.max(self.mss * 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Link, MSS, RTT, feedback, rto, select, setup};
    use crate::{Ecn, Rate};

    fn acked(packets: u64) -> Feedback<'static> {
        Feedback {
            acked_bytes: MSS * packets,
            ..feedback(Time::ZERO)
        }
    }

    fn loss(in_flight: u64) -> Feedback<'static> {
        Feedback {
            congestion: Some(Congestion::Loss),
            recovery: Recovery::Recovery,
            prior_in_flight: MSS * in_flight,
            ..acked(0)
        }
    }

    fn packets(reno: &NewReno) -> f64 {
        reno.control().cwnd.as_f64() / MSS.as_f64()
    }

    /// A flow in congestion avoidance with a window of `cwnd` packets.
    fn avoiding(cwnd: u64) -> NewReno {
        let mut reno = NewReno::new(&setup(), EcnUse::Off);
        (reno.cwnd, reno.ssthresh) = (MSS * cwnd, MSS * cwnd);
        reno
    }

    /// RFC 5681 §3.1: slow start doubles the window each round, then one packet a round.
    #[test]
    fn slow_start_doubles_and_avoidance_adds_one() {
        let mut reno = NewReno::new(&setup(), EcnUse::Off);
        (0..10).for_each(|_| reno.on_feedback(&acked(1)));
        assert_eq!((packets(&reno), reno.phase()), (20.0, Phase::SlowStart));
        let mut reno = avoiding(20);
        (0..20).for_each(|_| reno.on_feedback(&acked(1)));
        assert_eq!(
            (packets(&reno), reno.phase()),
            (21.0, Phase::CongestionAvoidance)
        );
    }

    #[test]
    fn slow_start_stops_at_ssthresh_within_one_feedback() {
        let mut reno = NewReno::new(&setup(), EcnUse::Off);
        reno.ssthresh = MSS * 12;
        // Two packets reach ssthresh. Twelve of the other fourteen make a window's worth, and two
        // are left over.
        reno.on_feedback(&acked(16));
        assert_eq!(packets(&reno), 13.0);
        reno.on_feedback(&acked(11));
        assert_eq!(packets(&reno), 14.0);
    }

    /// RFC 5681 §3.1: only packets that are acknowledged in order grow the window.
    #[test]
    fn packets_acknowledged_above_a_gap_do_not_grow_the_window() {
        let beyond = Feedback {
            recovery: Recovery::Disorder,
            ..acked(1)
        };
        let mut reno = avoiding(20);
        (0..40).for_each(|_| reno.on_feedback(&beyond));
        assert_eq!(
            (packets(&reno), reno.phase()),
            (20.0, Phase::CongestionAvoidance)
        );
    }

    /// RFC 5681 §3.1 (4) and §3.2: FlightSize counts, and two packets are the minimum.
    #[test]
    fn loss_halves_what_was_in_flight() {
        for (cwnd, in_flight, after) in [
            (100, 100, 50.0),
            (100, 40, 20.0),
            (100, 120, 50.0),
            (3, 3, 2.0),
        ] {
            let mut reno = avoiding(cwnd);
            reno.on_feedback(&loss(in_flight));
            assert_eq!((packets(&reno), reno.phase()), (after, Phase::Recovery));
        }
    }

    /// RFC 3168 §6.1.2 and RFC 8511 §3.1. Packets are ECN-capable (RFC 3168 §5).
    #[test]
    fn a_mark_lowers_the_window_like_a_loss_or_less() {
        for (spec, codepoint, after) in [
            ("newreno", Ecn::NotEct, 20.0),
            ("newreno:ecn=on", Ecn::Ect0, 20.0),
            ("newreno:ecn=abe", Ecn::Ect0, 32.0),
        ] {
            let mut reno = select(spec).build(&setup());
            assert_eq!(reno.stamp().ecn, codepoint);
            (0..30).for_each(|_| reno.on_feedback(&acked(1)));
            reno.on_feedback(&Feedback {
                congestion: Some(Congestion::Ecn),
                recovery: Recovery::Cwr,
                ..loss(40)
            });
            assert_eq!(reno.control().cwnd, MSS.mul_f64(after), "{spec}");
        }
        let mut reno = select("newreno:ecn=abe").build(&setup());
        (0..30).for_each(|_| reno.on_feedback(&acked(1)));
        reno.on_feedback(&loss(40));
        assert_eq!(reno.control().cwnd, MSS * 20, "a loss is a loss");
    }

    #[test]
    fn the_window_does_not_grow_in_recovery_or_unused() {
        let mut reno = avoiding(20);
        reno.on_feedback(&Feedback {
            cwnd_limited: false,
            ..acked(20)
        });
        reno.on_feedback(&Feedback {
            recovery: Recovery::Recovery,
            ..acked(20)
        });
        assert_eq!(packets(&reno), 20.0);
    }

    /// RFC 5681 §3.1: a timeout leaves one packet. The first timeout of a series sets ssthresh.
    #[test]
    fn timeout_restarts_from_one_packet() {
        let mut reno = avoiding(100);
        reno.on_rto(&rto(Time::ZERO, 100, 1));
        reno.on_rto(&rto(Time::ZERO, 1, 2));
        assert_eq!((packets(&reno), reno.ssthresh), (1.0, MSS * 50));
        reno.on_feedback(&Feedback {
            recovery: Recovery::Loss,
            ..acked(1)
        });
        assert_eq!(packets(&reno), 2.0);
    }

    /// RFC 5681 §4.1.
    #[test]
    fn silence_restarts_from_the_initial_window() {
        for (cwnd, after) in [(100, 10.0), (6, 6.0)] {
            let mut reno = avoiding(cwnd);
            reno.on_idle(Time::ZERO, Duration::from_secs(2));
            assert_eq!((packets(&reno), reno.ssthresh), (after, MSS * cwnd));
        }
    }

    #[test]
    fn a_spurious_reduction_is_undone_once() {
        let mut reno = avoiding(100);
        reno.on_feedback(&loss(100));
        reno.on_feedback(&Feedback {
            undo: true,
            ..acked(0)
        });
        assert_eq!((packets(&reno), reno.ssthresh), (100.0, MSS * 100));
        reno.set_cwnd(Time::ZERO, RTT, MSS * 30);
        reno.on_feedback(&Feedback {
            undo: true,
            ..acked(0)
        });
        assert_eq!(
            (packets(&reno), reno.phase()),
            (30.0, Phase::CongestionAvoidance)
        );
    }

    /// The fluid model of additive increase and halving: 12 Mbit/s, 120 ms.
    #[test]
    fn utilisation_matches_the_sawtooth() {
        for (buffer, expected) in [(12, 0.821), (30, 0.894), (60, 0.965), (120, 1.0)] {
            let mut link = Link::new(
                &select("newreno"),
                Rate::from_mbps(12.0),
                Duration::from_millis(120),
                buffer,
            );
            link.run(Duration::from_secs(30));
            let utilisation = link.utilisation(Duration::from_secs(200));
            assert!(
                (utilisation - expected).abs() < 0.05 * expected,
                "{buffer}: {utilisation}"
            );
        }
    }
}
