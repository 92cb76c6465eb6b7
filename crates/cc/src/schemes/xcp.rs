//! XCP: routers say by how many bytes to change the window (Katabi, Handley and Rohrs, "Congestion
//! Control for High Bandwidth-Delay Product Networks", SIGCOMM 2002, §3.3 and §3.4). The other
//! half, which is most of XCP, is the router: `net/src/queue/xcp.rs`.

use crate::{
    Bytes, Congestion, CongestionControl, Control, Duration, Ecn, Family, Feedback, Header, Need,
    Probe, Router, Rto, Scheme, Setup, Stamp,
};

const NEEDS: &[Need] = &[Need::PerPacket, Need::Header];
const SOURCE: &str = "Katabi, Handley and Rohrs 2002; ns-2 xcpq.cc, xcp-end-sys.cc";
const FIRST_WINDOW: &str =
    "A flow begins with RFC 6928's window, like every scheme here, not with one packet.";
const IN_USE: &str = "A window that is not in use does not grow (ns-2's option control_increase_), instead of asking \
                      for what the application will need (§3.3).";

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "xcp",
    family: Family::Explicit,
    summary: "routers that know the link's rate tell the sender how to change its window",
    source: SOURCE,
    deviations: &[
        FIRST_WINDOW,
        IN_USE,
        "On a link that follows a trace, the router uses the trace's mean rate as the link's rate.",
    ],
    needs: NEEDS,
    params: &[],
    build: |setup, _| Box::new(Xcp::new(setup)),
    receiver: None,
    router: Some(Router::Xcp),
};

/// Registry entry for routers that measure the link's rate; the sender is the same.
pub const WINDOWED: Scheme = Scheme {
    name: "xcp-w",
    summary: "XCP for links of varying rate: the router measures what the link can send",
    source: "Katabi, Handley and Rohrs 2002; Goyal et al. 2020 (ABC, NSDI), XCP_w",
    deviations: &[
        FIRST_WINDOW,
        IN_USE,
        "The router works out its feedback once a mean round trip, as XCP does, where the published XCP_w does at \
         every packet with other gains: only the capacity is another.",
    ],
    router: Some(Router::XcpWindowed),
    ..SCHEME
};

/// The state of one XCP flow.
#[derive(Debug)]
pub struct Xcp {
    mss: f64,
    /// The window in bytes.
    cwnd: f64,
    rtt: Duration,
    /// The last feedback, in bytes.
    feedback: f64,
    /// The window before the last loss, for [`Feedback::undo`].
    undo: Option<f64>,
}

impl Xcp {
    /// A flow at its initial window.
    pub fn new(setup: &Setup) -> Xcp {
        Xcp {
            mss: setup.mss.as_f64(),
            cwnd: setup.initial_cwnd.as_f64(),
            rtt: Duration::ZERO,
            feedback: 0.0,
            undo: None,
        }
    }

    /// §3.4: cwnd = max(cwnd + feedback, s). A flow with a small window on an idle link gets many
    /// windows at once, and nothing spreads them.
    fn change(&mut self, feedback: f64) {
        self.feedback = feedback;
        self.cwnd = (self.cwnd + feedback).max(self.mss);
    }
}

impl CongestionControl for Xcp {
    fn on_feedback(&mut self, f: &Feedback<'_>) {
        self.rtt = f.rtt_stats.smoothed;
        if f.undo
            && let Some(before) = self.undo.take()
        {
            self.cwnd = self.cwnd.max(before);
        }
        for packet in f.acked {
            let feedback = f64::from(packet.echo);
            let change = if feedback == f64::INFINITY {
                // No router has answered, so the window grows as TCP's (ns-2's `wnd_option_` 1).
                self.mss * packet.size.as_f64() / self.cwnd
            } else {
                feedback
            };
            if (change < 0.0 && change.is_finite()) || (change > 0.0 && f.cwnd_limited) {
                self.change(change);
            }
        }
        // §3.4: losses reduce the window as in TCP.
        if f.congestion == Some(Congestion::Loss) {
            self.undo = Some(self.cwnd);
            self.cwnd = (self.cwnd / 2.0).max(2.0 * self.mss);
        }
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        if rto.consecutive == 1 {
            self.undo = Some(self.cwnd);
        }
        self.cwnd = self.mss;
    }

    fn control(&self) -> Control {
        Control::window(Bytes::from_f64(self.cwnd))
    }

    /// §3.2 and §3.3: cwnd, RTT and the requested feedback. The first packets have no RTT, and the
    /// feedback is as large as possible.
    fn stamp(&self) -> Stamp {
        let rtt_s = self.rtt.as_secs_f64();
        Stamp {
            ecn: Ecn::NotEct,
            header: Header([self.cwnd as f32, rtt_s as f32, f32::INFINITY]),
        }
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.value("feedback_packets", self.feedback / self.mss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, RTT, feedback, rto, setup};
    use crate::{Acked, Tag, Time};

    fn acknowledge(xcp: &mut Xcp, feedback_bytes: &[f32], cwnd_limited: bool) {
        let acked = |&echo: &f32| Acked {
            number: 0,
            size: MSS,
            sent: Time::ZERO,
            received: Some(Time::ZERO),
            tag: Tag::NONE,
            ecn: Ecn::NotEct,
            echo,
        };
        let acked: Vec<Acked> = feedback_bytes.iter().map(acked).collect();
        xcp.on_feedback(&Feedback {
            acked: &acked,
            cwnd_limited,
            ..feedback(Time::ZERO)
        });
    }

    /// §3.4: cwnd = max(cwnd + H_feedback, s), for each packet.
    #[test]
    fn the_window_follows_the_routers_feedback() {
        let mut xcp = Xcp::new(&setup());
        acknowledge(&mut xcp, &[600.0, 900.0, -300.0], true);
        assert_eq!(xcp.control().cwnd, Bytes::new(16_200));
        acknowledge(&mut xcp, &[-1e9], true);
        assert_eq!(xcp.control().cwnd, MSS);
        // No content of a header takes the window out of bounds.
        acknowledge(
            &mut xcp,
            &[f32::NAN, f32::NEG_INFINITY, f32::MAX, f32::MIN],
            true,
        );
        assert_eq!(xcp.control().cwnd, MSS);
        acknowledge(&mut xcp, &[1500.0], false);
        assert_eq!(xcp.control().cwnd, MSS, "it was not in use");
    }

    /// ns-2's `wnd_option_` 1: the window grows by a packet a round trip, and not if it is unused.
    #[test]
    fn without_an_xcp_router_the_window_grows_as_renos() {
        let mut xcp = Xcp::new(&setup());
        acknowledge(&mut xcp, &[f32::INFINITY; 10], false);
        assert_eq!(xcp.control().cwnd, MSS * 10);
        acknowledge(&mut xcp, &[f32::INFINITY; 10], true);
        let packets = xcp.cwnd / MSS.as_f64();
        assert!((packets - 10.96).abs() < 0.01, "{packets}");
    }

    /// §3.2: the first packets have no RTT. Later ones carry what the router needs.
    #[test]
    fn headers_carry_window_and_rtt() {
        let mut xcp = Xcp::new(&setup());
        assert_eq!(xcp.stamp().header, Header([15_000.0, 0.0, f32::INFINITY]));
        acknowledge(&mut xcp, &[0.0], true);
        let rtt_s = RTT.as_secs_f64() as f32;
        assert_eq!(xcp.stamp().header, Header([15_000.0, rtt_s, f32::INFINITY]));
    }

    /// RFC 5681 §3.1, to which §3.4 refers: half of the window on loss, one packet after a timeout.
    #[test]
    fn losses_lower_the_window_as_tcps() {
        let mut xcp = Xcp::new(&setup());
        xcp.on_feedback(&Feedback {
            congestion: Some(Congestion::Loss),
            ..feedback(Time::ZERO)
        });
        assert_eq!(xcp.control().cwnd, MSS * 5);
        xcp.on_rto(&rto(Time::ZERO, 5, 1));
        assert_eq!(xcp.control().cwnd, MSS);
    }

    /// After spurious losses and timeouts, the state before the first in a row is restored.
    #[test]
    fn a_spurious_reduction_is_undone_only_once() {
        let undo = || Feedback {
            undo: true,
            ..feedback(Time::ZERO)
        };
        let mut xcp = Xcp::new(&setup());
        xcp.on_feedback(&Feedback {
            congestion: Some(Congestion::Loss),
            ..feedback(Time::ZERO)
        });
        xcp.on_feedback(&undo());
        assert_eq!(xcp.control().cwnd, MSS * 10);
        xcp.on_rto(&rto(Time::ZERO, 10, 1));
        xcp.on_rto(&rto(Time::ZERO, 1, 2));
        xcp.on_feedback(&undo());
        assert_eq!(xcp.control().cwnd, MSS * 10);
        acknowledge(&mut xcp, &[-1500.0], true);
        xcp.on_feedback(&undo());
        assert_eq!(xcp.control().cwnd, MSS * 9);
    }
}
