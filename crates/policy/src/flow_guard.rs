//! The kernel's guard for flows in simulated time and over real packets. It computes the same bits.

use headway_cc::schemes::cubic;
use headway_cc::{
    Base, Bytes, Congestion, CongestionControl, Control, Feedback, Probe, Rate, Setup, Time, Values,
};
use headway_fixed::{Guard, Limits, Verdict};
use zerocopy::transmute_ref;

use crate::Record;

/// A guard, and a Cubic for fallback if the base controller is not a Cubic itself.
#[derive(Debug)]
pub struct FlowGuard {
    limits: Limits,
    guard: Guard,
    setup: Setup,
    fallback_cubic: Option<Box<cubic::Cubic>>,
}

impl FlowGuard {
    /// The guard of one flow.
    pub fn new(setup: &Setup, limits: Limits) -> FlowGuard {
        let cwnd = (setup.initial_cwnd.get() / setup.mss.get().max(1)) as u32;
        FlowGuard {
            guard: Guard::new(setup.start.as_nanos(), cwnd, 0),
            fallback_cubic: None,
            setup: *setup,
            limits,
        }
    }

    /// Sets the limits from now on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Clears what was counted against the policy.
    pub fn acquit(&mut self) {
        self.guard.acquit();
    }

    /// Another policy takes over the flow, with this window and ssthresh. An ssthresh that is not
    /// set is `Bytes::MAX`.
    pub fn replace_policy(&mut self, now: Time, cwnd: Bytes, ssthresh: Bytes) {
        let packets = |bytes: Bytes| (bytes.get() / self.setup.mss.get().max(1)) as u32;
        let ssthresh = match ssthresh {
            Bytes::MAX => 0,
            known => packets(known),
        };
        (self.guard).replace_policy(now.as_nanos(), packets(cwnd), ssthresh);
    }

    /// No policy decides for the flow any more.
    pub fn forget(&mut self) {
        self.guard.forget();
    }

    /// The guard itself, for reading.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// The policy was sent a request.
    pub fn ask(&mut self, now: Time) {
        self.guard.ask(now.as_nanos());
    }

    /// The answer to the request of the time `requested` was given at `answered`, and is found now.
    /// May it be carried out?
    pub fn answer(&mut self, requested: Time, answered: Time, now: Time) -> bool {
        let [requested, answered, now] = [requested, answered, now].map(Time::as_nanos);
        (self.guard).answer(&self.limits, requested, answered, now)
    }

    /// Judges the flow's state after the base controller has taken the same acknowledgement.
    /// Records come in the order of their times.
    pub fn judge(&mut self, record: &Record) -> Verdict {
        self.guard.judge(&self.limits, transmute_ref!(record))
    }

    /// The window for a policy that wants this many bytes.
    pub fn cwnd(&mut self, wanted: f64) -> Bytes {
        let mss = self.setup.mss;
        let packets = (wanted / mss.as_f64()).round();
        mss * u64::from(self.guard.cwnd(&self.limits, packets as i64))
    }

    /// The rate for a policy that wants `wanted`.
    pub fn rate(&mut self, wanted: Rate) -> Rate {
        Rate::from_bps(self.guard.rate(&self.limits, wanted.as_bps() / 8) * 8)
    }

    /// The window and the ssthresh with which Cubic takes over a flow that has `control`.
    pub fn restart(&self, record: &Record, control: &Control) -> (Bytes, Bytes) {
        let ssthresh = match self.guard.restart(&self.limits, transmute_ref!(record)) {
            Guard::NO_SSTHRESH => Bytes::MAX,
            packets => self.setup.mss * u64::from(packets),
        };
        // The same as give_to_cubic() in base.h, except that the programs begin with the packets in
        // flight while losses are repaired.
        let cwnd = control.cwnd.max(self.setup.initial_cwnd).min(ssthresh);
        (cwnd, ssthresh)
    }

    /// The feedback for Cubic. Shortly after a trip of a policy that sent too much it hides losses
    /// of its packets, so that they do not lower Cubic's window.
    pub fn feedback_for_cubic<'a>(&self, feedback: &Feedback<'a>) -> Feedback<'a> {
        let rtt_us = (feedback.rtt_stats.smoothed.as_nanos() / 1000) as u32;
        let is_spared = self
            .guard
            .ignores_loss(&self.limits, feedback.now.as_nanos(), rtt_us);
        Feedback {
            congestion: (feedback.congestion)
                .filter(|what| !(is_spared && *what == Congestion::Loss)),
            ..*feedback
        }
    }

    /// Starts a fallback with a new Cubic.
    pub fn start_fallback(&mut self, (cwnd, ssthresh): (Bytes, Bytes)) {
        let values = Values::defaults(cubic::SCHEME.params);
        let mut cubic = cubic::Cubic::new(&self.setup, &values);
        cubic.go_alone(cwnd, ssthresh);
        self.fallback_cubic = Some(Box::new(cubic));
    }

    /// Ends the fallback, and returns Cubic's window.
    pub fn end_fallback(&mut self) -> Option<Bytes> {
        self.fallback_cubic.take().map(|cubic| cubic.control().cwnd)
    }

    /// The Cubic that controls the flow in fallback.
    pub fn fallback_cubic(&self) -> Option<&dyn CongestionControl> {
        self.fallback_cubic.as_deref().map(|cubic| cubic as _)
    }

    /// The Cubic that controls the flow in fallback.
    pub fn fallback_cubic_mut(&mut self) -> Option<&mut dyn CongestionControl> {
        self.fallback_cubic.as_deref_mut().map(|cubic| cubic as _)
    }

    /// Named values for recordings.
    pub fn probe(&self, probe: &mut dyn Probe) {
        probe.value("guard_trips", f64::from(self.guard.trips()));
        probe.value("guard_reason", f64::from(self.guard.reason() as u8));
        probe.value("guard_cubic_packets", self.guard.cubic().cwnd());
    }
}
