//! CUBIC (RFC 9438): the window follows a cubic function of the time since the last reduction.
//!
//! Windows are real numbers of packets, times are seconds. The cube root is computed once an epoch.
//! An acknowledgement costs two evaluations of a cubic polynomial and one division.

mod hystart;
mod tuning;

#[cfg(test)]
mod tests;

use hystart::{HyStart, Step};
pub use tuning::TUNABLES;

use crate::{
    Base, Bytes, Congestion, CongestionControl, Control, Duration, ECN, EcnUse, Family, Feedback,
    Kind, Param, Phase, Probe, Recovery, Rto, Scheme, Sent, Setup, Stamp, Tag, Time, Values,
};

const HYSTART: Param = Param {
    name: "hystart",
    help: "how slow start ends before a loss: RFC 9406, Linux's HyStart, or not at all",
    kind: Kind::Choice(&["hystart++", "classic", "none"]),
};
const FAST_CONVERGENCE: Param = Param {
    name: "fast_convergence",
    help: "release bandwidth to newcomers (RFC 9438 §4.7)",
    kind: Kind::Choice(&["on", "off"]),
};
const BETA: Param = Param {
    name: "beta",
    help: "the window is multiplied by this on congestion",
    kind: Kind::Number {
        default: 0.7,
        min: 0.1,
        max: 0.95,
    },
};
const C: Param = Param {
    name: "c",
    help: "steepness of the cubic, in packets/s^3",
    kind: Kind::Number {
        default: 0.4,
        min: 0.01,
        max: 100.0,
    },
};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "cubic",
    family: Family::Loss,
    summary: "grows along a cubic of time; the default of most systems",
    source: "RFC 9438, RFC 9406, RFC 3168",
    deviations: &[
        "Retransmissions can carry ECT, as in QUIC (RFC 9000 §13.4) and unlike RFC 3168 §6.1.5, because they are packets like any other.",
        "`ecn=abe` reacts to a mark in slow start as it does later: RFC 8511 can be read both ways.",
    ],
    needs: &[],
    params: &[HYSTART, FAST_CONVERGENCE, BETA, C, ECN],
    build: |setup, values| Box::new(Cubic::new(setup, values)),
    receiver: None,
    router: None,
};

/// The window as a function of time (RFC 9438 §4.2, Figure 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve {
    c: f64,
    k: f64,
    w_max: f64,
}

impl Curve {
    /// The curve with steepness `c` (packets/s^3) that starts at `cwnd` packets and has its plateau
    /// at `w_max` packets. If `cwnd` is there already, it starts at its plateau.
    pub fn new(c: f64, w_max: f64, cwnd: f64) -> Curve {
        if cwnd >= w_max {
            return Curve {
                c,
                k: 0.0,
                w_max: cwnd,
            };
        }
        Curve {
            c,
            k: libm::cbrt((w_max - cwnd) / c),
            w_max,
        }
    }

    /// W_cubic: packets, `t` seconds after the epoch began.
    #[inline]
    pub fn window(&self, t: f64) -> f64 {
        let x = t - self.k;
        self.c * (x * x * x) + self.w_max
    }

    /// K: the time in seconds until the plateau.
    pub fn k(&self) -> f64 {
        self.k
    }
}

/// A period of congestion avoidance without congestion.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    curve: Curve,
    /// What a Reno flow would have by now (RFC 9438 §4.3).
    w_est: f64,
}

/// The state that undoing a spurious reduction restores (RFC 9438 §4.9). All is in packets.
#[derive(Clone, Copy, Debug)]
struct Window {
    cwnd: f64,
    ssthresh: f64,
    /// The window at the last reduction; 0 while unknown.
    w_max: f64,
    /// The window when ssthresh was last set.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
}

/// The packets an RTT by which a Reno flow that reduces its window to `beta` of it has to grow to
/// be as fast as one that halves it and grows by one packet (RFC 9438 §4.3).
fn reno_growth(beta: f64) -> f64 {
    3.0 * (1.0 - beta) / (1.0 + beta)
}

/// The state of one CUBIC flow.
#[derive(Debug)]
pub struct Cubic {
    mss: f64,
    initial_cwnd: f64,
    c: f64,
    beta: f64,
    /// The growth of `w_est` per round trip. It is on average as fast as Reno's 1 with Reno's 1/2.
    alpha: f64,
    fast_convergence: bool,
    ecn: EcnUse,
    hystart: HyStart,
    window: Window,
    undo: Option<Window>,
    recovery: Recovery,
    /// Does a policy steer congestion avoidance?
    is_held: bool,
    /// The time up to which the epoch's time was counted.
    counted: Time,
}

impl Cubic {
    /// The factor of the window on a mark that reduces less than a loss (RFC 8511 §3.1).
    const BETA_ECN: f64 = 0.85;

    /// A flow at its initial window, in slow start.
    pub fn new(setup: &Setup, values: &Values) -> Cubic {
        let mss = setup.mss.as_f64();
        let initial_cwnd = setup.initial_cwnd.as_f64() / mss;
        let beta = values.number(&BETA);
        Cubic {
            mss,
            initial_cwnd,
            c: values.number(&C),
            beta,
            alpha: reno_growth(beta),
            fast_convergence: values.choice(&FAST_CONVERGENCE) == "on",
            ecn: EcnUse::of(values),
            hystart: HyStart::new(values.choice(&HYSTART)),
            window: Window {
                cwnd: initial_cwnd,
                ssthresh: f64::INFINITY,
                w_max: 0.0,
                cwnd_prior: 0.0,
                epoch: None,
            },
            undo: None,
            recovery: Recovery::Open,
            is_held: false,
            counted: Time::ZERO,
        }
    }

    fn grow(&mut self, f: &Feedback<'_>) {
        let mut acked = f.acked_bytes.as_f64() / self.mss;
        if self.window.cwnd < self.window.ssthresh {
            acked = self.slow_start(f, acked);
        }
        if acked > 0.0 && !self.is_held {
            self.avoid_congestion(f, acked);
        }
    }

    /// Runs slow start. Returns the acknowledged packets that are left for congestion avoidance.
    fn slow_start(&mut self, f: &Feedback<'_>, acked: f64) -> f64 {
        let w = &mut self.window;
        match self.hystart.step(f, w.cwnd, w.ssthresh) {
            Step::Grow { limit, divisor } => {
                let growth = acked.min(limit) / divisor;
                let room = w.ssthresh - w.cwnd;
                w.cwnd += growth.min(room);
                (growth - room).max(0.0)
            }
            // RFC 9438 §4.10: W_max is not known yet, so the curve begins at its plateau.
            Step::Leave => {
                w.ssthresh = w.cwnd;
                w.cwnd_prior = w.cwnd;
                acked
            }
        }
    }

    fn avoid_congestion(&mut self, f: &Feedback<'_>, acked: f64) {
        let c = self.c;
        let w = &mut self.window;
        let epoch = w.epoch.get_or_insert_with(|| Epoch {
            start: f.now,
            curve: Curve::new(c, w.w_max, w.cwnd),
            w_est: w.cwnd,
        });
        let share = acked / w.cwnd;
        let t = f.now.since(epoch.start).as_secs_f64();

        // §4.3: the window of a Reno flow. Above the old window it grows as Reno's.
        epoch.w_est += share
            * if epoch.w_est < w.cwnd_prior {
                self.alpha
            } else {
                1.0
            };
        if epoch.curve.window(t) < epoch.w_est {
            w.cwnd = w.cwnd.max(epoch.w_est);
        } else {
            // §4.4 and §4.5: the window moves towards the curve's value one round trip ahead.
            let ahead = t + f.rtt_stats.smoothed.as_secs_f64();
            let target = epoch.curve.window(ahead).clamp(w.cwnd, 1.5 * w.cwnd);
            w.cwnd += (target - w.cwnd) * share.min(1.0);
        }
    }

    /// §4.6 and §4.7: reduces the window. `flight` is what was in flight.
    fn reduce(&mut self, flight: Bytes, sign: Congestion) {
        self.undo = Some(self.window);
        let w = &mut self.window;
        // Windows are compared in whole packets, because a single flow reaches the end of a buffer
        // a fraction of a packet earlier or later.
        let retreating = self.fast_convergence && libm::floor(w.cwnd) < libm::floor(w.w_max);
        w.w_max = if retreating {
            w.cwnd * (1.0 + self.beta) / 2.0
        } else {
            w.cwnd
        };
        w.cwnd_prior = w.cwnd;
        // A flow reduces from what it used, which may be less than what it was allowed.
        let beta = if self.ecn.spares(sign) {
            Self::BETA_ECN
        } else {
            self.beta
        };
        w.ssthresh = beta * (flight.as_f64() / self.mss).min(w.cwnd);
        w.epoch = None;
    }

    /// §5.8: the time until `now` in which the window was not used does not count for the curve.
    fn pause(&mut self, now: Time) {
        if let Some(epoch) = &mut self.window.epoch {
            epoch.start += now.since(self.counted);
        }
    }
}

impl CongestionControl for Cubic {
    fn on_sent(&mut self, sent: &Sent) -> Tag {
        if sent.in_flight == sent.size {
            self.pause(sent.now);
            self.counted = sent.now;
        }
        Tag::NONE
    }

    fn on_feedback(&mut self, f: &Feedback<'_>) {
        self.recovery = f.recovery;
        if f.undo
            && let Some(before) = self.undo.take()
        {
            self.window = Window {
                cwnd: self.window.cwnd.max(before.cwnd),
                ..before
            };
        }
        if let Some(sign) = f.congestion {
            self.reduce(f.prior_in_flight, sign);
            let w = &mut self.window;
            w.cwnd = w
                .ssthresh
                .max(if sign == Congestion::Loss { 2.0 } else { 1.0 });
            w.ssthresh = w.ssthresh.max(2.0);
        } else if !f.cwnd_limited {
            self.pause(f.now);
        } else if matches!(f.recovery, Recovery::Open | Recovery::Loss) {
            self.grow(f);
        }
        self.counted = f.now;
    }

    /// §4.8: the first epoch after a timeout begins at its plateau, so W_max is forgotten.
    fn on_rto(&mut self, rto: &Rto<'_>) {
        if rto.consecutive == 1 {
            self.reduce(rto.prior_in_flight, Congestion::Loss);
            self.window.ssthresh = self.window.ssthresh.max(2.0);
        }
        self.window.w_max = 0.0;
        self.window.cwnd = 1.0;
        self.recovery = Recovery::Loss;
    }

    /// RFC 5681 §4.1: after silence the window restarts from the initial one. Slow start leads to
    /// ssthresh, and a new epoch begins there.
    fn on_idle(&mut self, _: Time, _: Duration) {
        let w = &mut self.window;
        if w.cwnd > self.initial_cwnd {
            w.cwnd = self.initial_cwnd;
            w.epoch = None;
        }
    }

    fn control(&self) -> Control {
        Control::window(Bytes::from_f64(self.window.cwnd * self.mss))
    }

    fn stamp(&self) -> Stamp {
        self.ecn.stamp()
    }

    fn probe(&self, probe: &mut dyn Probe) {
        let w = &self.window;
        if w.ssthresh.is_finite() {
            probe.value("ssthresh_packets", w.ssthresh);
        }
        probe.value("w_max_packets", w.w_max);
        if let Some(epoch) = w.epoch {
            probe.value("k_s", epoch.curve.k);
            probe.value("w_est_packets", epoch.w_est);
        }
    }
}

impl Base for Cubic {
    fn phase(&self) -> Phase {
        match self.recovery {
            Recovery::Cwr | Recovery::Recovery | Recovery::Loss => Phase::Recovery,
            _ if self.window.cwnd < self.window.ssthresh => Phase::SlowStart,
            _ => Phase::CongestionAvoidance,
        }
    }

    fn ssthresh(&self) -> Bytes {
        match self.window.ssthresh {
            packets if packets.is_finite() => Bytes::new((packets * self.mss).round() as u64),
            _ => Bytes::MAX,
        }
    }

    /// A new epoch begins at the chosen window. Congestion avoidance continues, since slow start
    /// would undo a reduction.
    fn set_cwnd(&mut self, _: Time, _: Duration, cwnd: Bytes) {
        let w = &mut self.window;
        let chosen = (cwnd.as_f64() / self.mss).max(1.0);
        if w.cwnd >= w.ssthresh {
            w.ssthresh = w.ssthresh.min(chosen);
        }
        w.cwnd = chosen;
        w.epoch = None;
    }

    fn hold(&mut self) {
        self.is_held = true;
    }

    fn go_alone(&mut self, cwnd: Bytes, ssthresh: Bytes) {
        self.is_held = false;
        self.undo = None;
        self.hystart = self.hystart.restarted();
        let w = &mut self.window;
        (w.w_max, w.cwnd_prior, w.epoch) = (0.0, 0.0, None);
        if self.phase() != Phase::Recovery {
            let packets = |bytes: Bytes| bytes.as_f64() / self.mss;
            self.window.cwnd = packets(cwnd).max(1.0);
            self.window.ssthresh = match ssthresh {
                Bytes::MAX => f64::INFINITY,
                ssthresh => packets(ssthresh).max(2.0),
            };
        }
    }
}
