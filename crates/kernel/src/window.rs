//! A window that belongs to the policy in every state, as in `headway_window`.

use headway_cc::schemes::cubic;
use headway_cc::{
    Base, Bytes, CongestionControl, Control, Duration, Feedback, Phase, Probe, Rate, Registry, Rto,
    Sent, Setup, Tag, Time,
};

/// Cubic with Linux's HyStart, which the programs use as their base controller.
pub fn kernels_cubic(setup: &Setup) -> cubic::Cubic {
    let selection = Registry::new(&[cubic::SCHEME]).select("cubic:hystart=classic");
    cubic::Cubic::new(setup, &selection.expect("it has that parameter").values)
}

/// A window that a policy steers in every state. Without a policy Cubic controls the flow.
#[derive(Debug)]
pub struct Window {
    cubic: cubic::Cubic,
    /// The policy's window, while it controls the flow.
    cwnd: Option<Bytes>,
    /// Is the window paced, as for a round trip after an idle period? Then no acknowledgements
    /// clock it out.
    is_paced: bool,
    paced_until: Time,
    srtt: Duration,
}

/// The share of the policy's window that pacing sends in a round trip.
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

    /// A socket has one window, so a loss leaves a part of the policy's window.
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
        // As pace_policy() does.
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
        // As resume() does.
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
    /// An action is carried out in every state.
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
        // In recovery the kernel keeps the part of the policy's window that a loss left, however
        // large. So it is lowered here, as give_to_cubic() does.
        if self.cubic.control().cwnd > ssthresh {
            self.cubic.set_cwnd(Time::ZERO, Duration::ZERO, ssthresh);
        }
    }
}
