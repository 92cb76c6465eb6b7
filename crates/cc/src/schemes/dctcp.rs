//! DCTCP: reduces the window by the share of packets that were marked (RFC 8257; Alizadeh et al.,
//! SIGCOMM 2010).
//!
//! The queue marks every packet that finds more than K packets before it. The fraction of marks
//! shows the sender how far above K the queue was. All the rest is NewReno's.

use crate::{
    Base, Bytes, Congestion, CongestionControl, Control, Duration, Ecn, EcnUse, Family, Feedback,
    Kind, Need, Param, Probe, RoundCounter, Rto, Scheme, Setup, Stamp, Time, Values,
};

use super::newreno::NewReno;

const G: Param = Param {
    name: "g",
    help: "the weight of the newest window in alpha",
    kind: Kind::Number {
        default: 1.0 / 16.0,
        min: 0.001,
        max: 1.0,
    },
};
const ALPHA: Param = Param {
    name: "alpha",
    help: "the share of marked packets assumed at the start",
    kind: Kind::Number {
        default: 1.0,
        min: 0.0,
        max: 1.0,
    },
};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "dctcp",
    family: Family::Loss,
    summary: "cuts the window by the share of marked packets; NewReno where no router marks",
    source: "RFC 8257",
    deviations: &[],
    needs: &[Need::EcnEcho],
    params: &[G, ALPHA],
    build: |setup, values| Box::new(Dctcp::new(setup, values)),
    receiver: None,
    router: None,
};

/// The state of one DCTCP flow.
#[derive(Debug)]
pub struct Dctcp {
    /// NewReno, which holds the window, grows it (RFC 8257 §3.4) and reduces it on losses (§3.5).
    reno: NewReno,
    mss: Bytes,
    g: f64,
    /// The smoothed share of marked bytes.
    alpha: f64,
    /// Counts windows of data: RFC 8257's `DCTCP.WindowEnd`.
    windows: RoundCounter,
    /// The bytes that were acknowledged, and those marked, when this window of data began.
    delivered_before: Bytes,
    marked_before: Bytes,
}

impl Dctcp {
    /// A flow at its initial window, in slow start.
    pub fn new(setup: &Setup, values: &Values) -> Dctcp {
        Dctcp {
            reno: NewReno::new(setup, EcnUse::Off),
            mss: setup.mss,
            g: values.number(&G),
            alpha: values.number(&ALPHA),
            windows: RoundCounter::default(),
            delivered_before: Bytes::ZERO,
            marked_before: Bytes::ZERO,
        }
    }

    /// RFC 8257 §3.3, steps 4 to 8: once a window of data, alpha = (1 - g) alpha + g M.
    fn end_window(&mut self, f: &Feedback<'_>) {
        let acked = f.counters.delivered.saturating_sub(self.delivered_before);
        let marked = f.counters.ce.saturating_sub(self.marked_before);
        (self.delivered_before, self.marked_before) = (f.counters.delivered, f.counters.ce);
        let m = marked.min(acked).as_f64() / acked.as_f64().max(1.0);
        self.alpha = (1.0 - self.g) * self.alpha + self.g * m;
    }

    /// RFC 8257 §3.3, step 9: reduces cwnd to cwnd (1 - alpha / 2), once a window of data, and goes
    /// on in congestion avoidance.
    fn reduce(&mut self, f: &Feedback<'_>) {
        let left = self.reno.cwnd.mul_f64(1.0 - self.alpha / 2.0);
        let left = left.max(self.mss * 2);
        self.reno.set_cwnd(f.now, f.rtt_stats.smoothed, left);
        self.reno.ssthresh = left;
    }
}

impl CongestionControl for Dctcp {
    fn on_feedback(&mut self, f: &Feedback<'_>) {
        if self.windows.on_feedback(f) {
            self.end_window(f);
        }
        if f.congestion == Some(Congestion::Ecn) {
            self.reduce(f);
        } else {
            self.reno.on_feedback(f);
        }
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        self.reno.on_rto(rto);
    }

    fn on_idle(&mut self, now: Time, idle: Duration) {
        self.reno.on_idle(now, idle);
    }

    fn control(&self) -> Control {
        self.reno.control()
    }

    fn stamp(&self) -> Stamp {
        Stamp {
            ecn: Ecn::Ect0,
            ..Stamp::default()
        }
    }

    fn probe(&self, probe: &mut dyn Probe) {
        self.reno.probe(probe);
        probe.value("alpha", self.alpha);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Link, MSS, feedback, rto, select, setup};
    use crate::{Counters, Rate, Recovery};

    fn dctcp(cwnd: u64) -> Dctcp {
        let mut dctcp = Dctcp::new(&setup(), &Values::defaults(SCHEME.params));
        (dctcp.reno.cwnd, dctcp.reno.ssthresh) = (MSS * cwnd, MSS * cwnd);
        dctcp
    }

    /// Acknowledges a window of ten packets, of which the last `marked` are marked. Each window
    /// ends at a packet's number.
    fn window(dctcp: &mut Dctcp, marked: u64) {
        let (begin, ce) = (dctcp.delivered_before, dctcp.marked_before);
        for i in 1..=10 {
            let number = begin.get() / MSS.get() + i;
            dctcp.on_feedback(&Feedback {
                acked_bytes: MSS,
                largest_acked: number,
                // The first window ends with packet 10.
                next_number: number + 10,
                counters: Counters {
                    delivered: begin + MSS * i,
                    ce: ce + MSS * (i + marked).saturating_sub(10),
                    ..Counters::default()
                },
                cwnd_limited: false,
                ..feedback(Time::ZERO)
            });
        }
    }

    /// A flow in the middle of a connection, where a window of data begins with packet 1.
    fn steady() -> Dctcp {
        let mut dctcp = dctcp(10);
        dctcp.windows.restart(10);
        dctcp
    }

    /// algorithms.md §14.5: five windows without marks are followed by one with nothing but marks.
    #[test]
    fn alpha_follows_the_share_of_marked_bytes() {
        let mut dctcp = steady();
        (0..5).for_each(|_| window(&mut dctcp, 0));
        assert!((dctcp.alpha - 0.7242).abs() < 5e-5, "{}", dctcp.alpha);
        window(&mut dctcp, 10);
        assert!((dctcp.alpha - 0.7414).abs() < 5e-5, "{}", dctcp.alpha);
        // By hand: 0.7414 * 15/16 + 0.3 / 16.
        window(&mut dctcp, 3);
        assert!((dctcp.alpha - 0.7138).abs() < 1e-4, "{}", dctcp.alpha);
    }

    fn sign(sign: Congestion, in_flight: u64) -> Feedback<'static> {
        Feedback {
            congestion: Some(sign),
            recovery: match sign {
                Congestion::Ecn => Recovery::Cwr,
                Congestion::Loss => Recovery::Recovery,
            },
            prior_in_flight: MSS * in_flight,
            ..feedback(Time::ZERO)
        }
    }

    /// RFC 8257 §3.3: the window is reduced by half of alpha, and halved if every packet was
    /// marked.
    #[test]
    fn a_mark_cuts_by_half_of_alpha() {
        for (alpha, after) in [(1.0, 50.0), (0.5, 75.0), (0.1, 95.0), (0.0, 100.0)] {
            let mut dctcp = dctcp(100);
            dctcp.alpha = alpha;
            // What is in flight does not matter here, unlike for a loss.
            dctcp.on_feedback(&sign(Congestion::Ecn, 60));
            assert_eq!(dctcp.control().cwnd, MSS.mul_f64(after), "{alpha}");
            assert_eq!(dctcp.reno.ssthresh, dctcp.reno.cwnd, "slow start is over");
        }
        let mut small = dctcp(3);
        small.on_feedback(&sign(Congestion::Ecn, 3));
        assert_eq!(small.control().cwnd, MSS * 2, "RFC 5681 Eq. 4");
    }

    /// RFC 8257 §3.5: a loss or a timeout reduces the window as in NewReno, whatever alpha is.
    #[test]
    fn a_loss_halves_what_was_in_flight() {
        let mut dctcp = dctcp(100);
        dctcp.alpha = 0.0;
        dctcp.on_feedback(&sign(Congestion::Loss, 80));
        assert_eq!(dctcp.control().cwnd, MSS * 40);
        dctcp.on_rto(&rto(Time::ZERO, 40, 1));
        assert_eq!(dctcp.control().cwnd, MSS);
    }

    /// RFC 8257 §3.4 and §3.5: with a queue that never marks, DCTCP equals NewReno, packet for
    /// packet.
    #[test]
    fn without_marks_dctcp_equals_newreno() {
        let run = |scheme: &str| {
            let rtt = Duration::from_millis(120);
            let mut link = Link::new(&select(scheme), Rate::from_mbps(12.0), rtt, 60);
            let window = |_| {
                link.run(Duration::from_millis(50));
                link.host.cc.control().cwnd
            };
            (0..1200).map(window).collect::<Vec<_>>()
        };
        let (dctcp, reno) = (run("dctcp"), run("newreno"));
        assert_eq!(dctcp, reno);
        assert!(reno.windows(2).any(|w| w[1] < w[0]), "nothing was lost");
    }

    /// Every packet is ECN-capable (RFC 8257 §3.1).
    #[test]
    fn packets_are_ecn_capable() {
        assert_eq!(dctcp(10).stamp().ecn, Ecn::Ect0);
    }
}
