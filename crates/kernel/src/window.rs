//! A window that its policy has in every state, as `headway_window` has it.

use headway_cc::schemes::cubic;
use headway_cc::{
    Base, Bytes, CongestionControl, Control, Duration, Feedback, Phase, Probe, Rate, Registry, Rto,
    Sent, Setup, Tag, Time,
};

/// Cubic with Linux's own HyStart, as the programs have it for a base controller.
pub fn kernels_cubic(setup: &Setup) -> cubic::Cubic {
    let selection = Registry::new(&[cubic::SCHEME]).select("cubic:hystart=classic");
    cubic::Cubic::new(setup, &selection.expect("it has that parameter").values)
}

/// Steered in every state; where nobody steers it, Cubic has the flow.
#[derive(Debug)]
pub struct Window {
    cubic: cubic::Cubic,
    /// The policy's, while it has the flow.
    cwnd: Option<Bytes>,
    /// As for a round trip after an idle period: no acknowledgements clock it out.
    is_paced: bool,
    paced_until: Time,
    srtt: Duration,
}

/// Of the policy's window a round trip, where it is paced.
const PACED_PERCENT: u64 = 120;

impl Window {
    pub fn new(setup: &Setup) -> Window {
        Window {
            cubic: kernels_cubic(setup),
            cwnd: None,
            is_paced: false,
            paced_until: Time::ZERO,
            srtt: Duration::ZERO,
        }
    }

    /// A socket has one window: what a loss leaves of it is a part of the policy's.
    fn follow(&mut self, now: Time) {
        if let Some(cwnd) = self.cwnd {
            self.cubic.set_cwnd(now, Duration::ZERO, cwnd);
        }
    }
}

impl CongestionControl for Window {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        self.cubic.on_sent(sent)
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        if feedback.congestion.is_some() || self.cubic.phase() != Phase::Recovery {
            self.follow(feedback.now);
        }
        self.cubic.on_feedback(feedback);
        // pace_policy()
        self.srtt = feedback.rtt_stats.smoothed;
        self.is_paced = feedback.now < self.paced_until;
    }

    fn on_rto(&mut self, rto: &Rto<'_>) {
        if rto.consecutive == 1 {
            self.follow(rto.now);
        }
        self.cubic.on_rto(rto);
    }

    fn on_idle(&mut self, now: Time, idle: Duration) {
        self.cubic.on_idle(now, idle);
        // resume()
        (self.is_paced, self.paced_until) = (true, now + self.srtt);
    }

    fn control(&self) -> Control {
        let Some(cwnd) = self.cwnd else {
            return self.cubic.control();
        };
        let bits = cwnd.get() * 8 * PACED_PERCENT / 100 * 1_000_000_000;
        match bits.checked_div(self.srtt.as_nanos()) {
            Some(bps) if self.is_paced => Control::paced(cwnd, Rate::from_bps(bps)),
            _ => Control::window(cwnd),
        }
    }

    fn owns_recovery(&self) -> bool {
        self.cwnd.is_some() || self.cubic.owns_recovery()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        self.cubic.probe(probe);
    }
}

impl Base for Window {
    /// An action is always carried out.
    fn phase(&self) -> Phase {
        Phase::CongestionAvoidance
    }

    fn ssthresh(&self) -> Bytes {
        self.cubic.ssthresh()
    }

    fn set_cwnd(&mut self, _: Time, _: Duration, cwnd: Bytes) {
        self.cwnd = self.cwnd.map(|_| cwnd);
    }

    fn hold(&mut self) {
        self.cwnd = Some(self.cubic.control().cwnd);
    }

    fn go_alone(&mut self, cwnd: Bytes, ssthresh: Bytes) {
        self.cwnd = None;
        self.cubic.go_alone(cwnd, ssthresh);
        // In recovery what a loss left of the policy's window, however large, stays: it is lowered
        // (give_to_cubic()).
        if self.cubic.control().cwnd > ssthresh {
            self.cubic.set_cwnd(Time::ZERO, Duration::ZERO, ssthresh);
        }
    }
}
