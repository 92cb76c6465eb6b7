//! ABC: a router marks each packet "accelerate" or "brake" (Goyal et al., "ABC: A Simple Explicit
//! Congestion Controller for Wireless Networks", NSDI 2020). The other half is the router,
//! `net/src/queue/abc.rs`.
//!
//! Besides the window that the marks steer there is a second one for paths without such a router,
//! which is Cubic's. The smaller of the two counts (§5.1.1).

use crate::{
    Base, Bytes, Congestion, CongestionControl, Control, Duration, Ecn, Family, Feedback, Kind,
    Need, Param, Probe, Recovery, Router, Rto, Scheme, Sent, Setup, Stamp, Tag, Time, Values,
};

use super::cubic::{self, Cubic};

const ADDITIVE: Param = Param {
    name: "additive",
    help: "packets by which the window grows each round trip independent of marks; makes flows equal (§3.2)",
    kind: Kind::Number {
        default: 1.0,
        min: 0.0,
        max: 10.0,
    },
};
const DUAL: Param = Param {
    name: "dual",
    help: "use Cubic's window as a second one, for paths whose bottleneck has no ABC router (§5.1.1)",
    kind: Kind::Choice(&["on", "off"]),
};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "abc",
    family: Family::Explicit,
    summary: "accelerates or brakes by a packet as the router marks it",
    source: "Goyal et al. 2020 (ABC, NSDI)",
    deviations: &[
        "One queue takes ABC's packets and others', which pass unmarked: the paper's router gives them two queues \
         with weights (§5.2), a scheduler that no comparison of single flows needs.",
        "A timeout shrinks only Cubic's window, as losses do: the paper does not mention timeouts.",
    ],
    needs: &[Need::PerPacket, Need::EcnEcho],
    params: &[ADDITIVE, DUAL],
    build: |setup, values| Box::new(Abc::new(setup, values)),
    receiver: None,
    router: Some(Router::Abc),
};

/// The state of one ABC flow.
#[derive(Debug)]
pub struct Abc {
    mss: f64,
    additive: f64,
    /// w_abc, in packets: the window that follows the router.
    window: f64,
    /// The window before the last loss if there is no second window, for [`Feedback::undo`].
    undo: Option<f64>,
    /// w_nonabc: the window that follows losses and CE marks.
    other: Option<Cubic>,
    accelerations: u64,
    brakes: u64,
}

impl Abc {
    /// `tcp_abc.c` keeps a few packets in flight, because otherwise no mark could come back.
    const MIN_CWND: f64 = 2.0;

    /// A flow at its initial window.
    pub fn new(setup: &Setup, values: &Values) -> Abc {
        let dual = values.choice(&DUAL) == "on";
        let mss = setup.mss.as_f64();
        Abc {
            mss,
            additive: values.number(&ADDITIVE),
            window: setup.initial_cwnd.as_f64() / mss,
            undo: None,
            other: dual.then(|| Cubic::new(setup, &Values::defaults(cubic::SCHEME.params))),
            accelerations: 0,
            brakes: 0,
        }
    }

    /// §3.1.2 and §3.2: "accelerate" sends two packets and "brake" none, and either lets the window
    /// grow by 1/w.
    fn on_mark(&mut self, ecn: Ecn) {
        let step = match ecn {
            Ecn::Ect1 => 1.0,
            Ecn::Ect0 => -1.0,
            // A CE mark is for the other window. A packet that is not ECN-capable has lost its
            // mark, or its receiver did not echo it.
            Ecn::Ce | Ecn::NotEct => return,
        };
        self.accelerations += u64::from(step > 0.0);
        self.brakes += u64::from(step < 0.0);
        self.window = (self.window + step + self.additive / self.window).max(Self::MIN_CWND);
    }

    /// §5.1.1: neither window may grow beyond twice what is in flight. Otherwise the one that does
    /// not limit would grow without bounds.
    fn cap(&mut self, now: Time, rtt: Duration, in_flight: Bytes) {
        let most = (2.0 * in_flight.as_f64() / self.mss).max(Self::MIN_CWND);
        self.window = self.window.min(most);
        let most = Bytes::from_f64(most * self.mss);
        if let Some(other) = &mut self.other
            && other.control().cwnd > most
        {
            other.set_cwnd(now, rtt, most);
        }
    }
}

impl CongestionControl for Abc {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.other.as_mut().map_or(Tag::NONE, |o| o.on_sent(sent))
    }

    fn on_feedback(&mut self, f: &Feedback<'_>) {
        if f.undo
            && let Some(before) = self.undo.take()
        {
            self.window = self.window.max(before);
        }
        for packet in f.acked {
            self.on_mark(packet.ecn);
        }
        match &mut self.other {
            Some(other) => other.on_feedback(f),
            // Without the second window a loss halves the first, as in `tcp_abc.c`.
            None if f.congestion == Some(Congestion::Loss) => {
                self.undo = Some(self.window);
                self.window = (self.window / 2.0).max(Self::MIN_CWND);
            }
            None => {}
        }
        // During loss repair less is in flight than the windows allow.
        if f.recovery == Recovery::Open {
            let in_flight = f.prior_in_flight.max(f.in_flight);
            self.cap(f.now, f.rtt_stats.smoothed, in_flight);
        }
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        match &mut self.other {
            Some(other) => other.on_rto(rto),
            None => {
                if rto.consecutive == 1 {
                    self.undo = Some(self.window);
                }
                self.window = Self::MIN_CWND;
            }
        }
    }

    fn on_idle(&mut self, now: Time, idle: Duration) {
        if let Some(other) = &mut self.other {
            other.on_idle(now, idle);
        }
    }

    fn control(&self) -> Control {
        let window = Bytes::from_f64(self.window * self.mss);
        match &self.other {
            Some(other) => Control::window(window.min(other.control().cwnd)),
            None => Control::window(window),
        }
    }

    /// §5.1: every packet is marked "accelerate", which routers may change to "brake".
    fn stamp(&self) -> Stamp {
        Stamp {
            ecn: Ecn::Ect1,
            ..Stamp::default()
        }
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.value("w_abc_packets", self.window);
        if let Some(other) = &self.other {
            let window = other.control().cwnd.as_f64() / self.mss;
            probe.value("w_nonabc_packets", window);
        }
        probe.value("accelerations", self.accelerations as f64);
        probe.value("brakes", self.brakes as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Acked;
    use crate::testing::{MSS, feedback, rto, select, setup};

    fn abc(window: f64) -> Abc {
        let mut abc = Abc::new(&setup(), &Values::defaults(SCHEME.params));
        abc.window = window;
        abc
    }

    /// Acknowledges a packet with each of these marks, while `in_flight` packets are in flight.
    fn marked(abc: &mut Abc, marks: &[Ecn], in_flight: u64) {
        let acked = |&ecn: &Ecn| Acked {
            number: 0,
            size: MSS,
            sent: Time::ZERO,
            received: Some(Time::ZERO),
            tag: Tag::NONE,
            ecn,
            echo: 0.0,
        };
        let acked: Vec<Acked> = marks.iter().map(acked).collect();
        abc.on_feedback(&Feedback {
            acked: &acked,
            acked_bytes: MSS * acked.len() as u64,
            prior_in_flight: MSS * in_flight,
            ..feedback(Time::from_millis(100))
        });
    }

    fn packets(abc: &Abc) -> f64 {
        abc.control().cwnd.as_f64() / MSS.as_f64()
    }

    /// §3.1.2 with §3.2, by hand: w + 1 + 1/w and w - 1 + 1/w.
    #[test]
    fn each_mark_changes_the_window_by_one_packet() {
        for (ecn, after) in [
            (Ecn::Ect1, 11.1),
            (Ecn::Ect0, 9.1),
            (Ecn::Ce, 10.0),
            (Ecn::NotEct, 10.0),
        ] {
            let mut abc = abc(10.0);
            marked(&mut abc, &[ecn], 10);
            assert!((abc.window - after).abs() < 1e-9, "{ecn:?}: {}", abc.window);
        }
    }

    /// §3.1: a window of "accelerate" marks doubles it, and one of "brake" marks leaves the
    /// minimum. Half and half adds only the packet of the additive increase, or nothing without
    /// that.
    #[test]
    fn a_round_trip_of_accelerate_or_brake_marks_scales_the_window() {
        let window = |marks: Vec<Ecn>, additive: f64| {
            let mut abc = abc(40.0);
            abc.additive = additive;
            for mark in marks {
                marked(&mut abc, &[mark], 1000);
            }
            abc.window
        };
        assert_eq!(window(vec![Ecn::Ect1; 40], 0.0), 80.0);
        assert_eq!(window(vec![Ecn::Ect0; 40], 0.0), Abc::MIN_CWND);
        let half = || [Ecn::Ect1, Ecn::Ect0].repeat(20);
        assert_eq!(window(half(), 0.0), 40.0);
        assert!((window(half(), 1.0) - 41.0).abs() < 0.05);
    }

    /// §5.1.1: the smaller window counts, and neither exceeds twice what is in flight.
    #[test]
    fn the_smaller_of_two_windows_counts() {
        let mut abc = abc(100.0);
        assert_eq!(packets(&abc), 10.0);
        for _ in 0..200 {
            marked(&mut abc, &[Ecn::Ect1], 12);
        }
        assert_eq!((abc.window, packets(&abc)), (24.0, 24.0));
        marked(&mut abc, &[Ecn::Ect0; 10], 24);
        assert!((packets(&abc) - 14.55).abs() < 0.05, "{}", packets(&abc));
        let other = abc.other.as_ref().expect("two windows").control().cwnd;
        assert!(other > MSS * 24);
    }

    /// RFC 9438 §4.6: a loss, or a CE mark of another router, reduces Cubic's window to 70%, and
    /// ABC's stays.
    #[test]
    fn losses_and_ce_marks_lower_only_the_cubic_window() {
        for sign in [Congestion::Loss, Congestion::Ecn] {
            let mut abc = abc(10.0);
            abc.on_feedback(&Feedback {
                congestion: Some(sign),
                recovery: Recovery::Recovery,
                prior_in_flight: MSS * 10,
                ..feedback(Time::from_millis(100))
            });
            assert_eq!((abc.window, packets(&abc)), (10.0, 7.0));
            abc.on_rto(&rto(Time::from_millis(200), 7, 1));
            assert_eq!((abc.window, packets(&abc)), (10.0, 1.0));
        }
    }

    /// A loss halves a single window. It gets its size back if the packets were only late.
    #[test]
    fn a_spurious_reduction_of_one_window_is_undone() {
        let mut abc = Abc::new(&setup(), &select("abc:dual=off").values);
        let flight = |recovery| Feedback {
            recovery,
            prior_in_flight: MSS * 10,
            ..feedback(Time::from_millis(100))
        };
        abc.on_feedback(&Feedback {
            congestion: Some(Congestion::Loss),
            ..flight(Recovery::Recovery)
        });
        assert_eq!(packets(&abc), 5.0);
        abc.on_feedback(&Feedback {
            undo: true,
            ..flight(Recovery::Open)
        });
        assert_eq!(packets(&abc), 10.0);
    }
}
