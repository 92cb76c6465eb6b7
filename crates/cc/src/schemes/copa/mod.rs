//! Copa (Arun and Balakrishnan, NSDI 2018): the window moves towards the rate 1/(delta d_q), where
//! d_q is the queueing delay. Windows are real numbers of packets.
//!
//! The code follows the paper where its authors' code (genericCC) and Meta's (mvfst) differ from
//! it. As in genericCC, the velocity is bounded, and the window falls under heavy loss. Three rules
//! are Headway's own: v falls to 1 in a round trip in which the window has turned, the reaction to
//! a timeout, and that an unused window does not grow.

mod filter;
mod loss_guard;

#[cfg(test)]
mod tests;

use filter::Extreme;
use loss_guard::LossGuard;

use crate::{
    Bytes, Congestion, CongestionControl, Control, Duration, Family, Feedback, Kind, Need, Param,
    Probe, Rate, RoundCounter, Rto, Scheme, Setup, Values,
};

const DELTA: Param = Param {
    name: "delta",
    help: "on average 1/delta packets wait in the queue; in competitive mode, the upper limit of delta",
    kind: Kind::Number {
        default: 0.5,
        min: 0.004,
        max: 10.0,
    },
};
const MODE: Param = Param {
    name: "mode",
    help: "switch to competitive mode where others fill the queue, or always use one mode",
    kind: Kind::Choice(&["auto", "default", "competitive"]),
};

/// Registry entry.
pub const SCHEME: Scheme = Scheme {
    name: "copa",
    family: Family::Delay,
    summary: "aims at a rate of 1/(delta x queueing delay); competes where others fill the queue",
    source: "Arun and Balakrishnan, NSDI 2018; bound on velocity and reaction to heavy loss as in genericCC",
    deviations: &[
        "The velocity is at most delta x window, as in the authors' genericCC; a higher velocity would be a burst.",
        "The velocity is 1 from the end of a round trip in which the window changed direction. By the paper's rule it may oscillate for ever.",
        "The window falls under heavy loss, as in genericCC. Otherwise two flows would lose most packets in small buffers.",
        "A timeout sets the window to two packets and starts slow start. The paper does not mention timeouts.",
        "A window that is half unused does not grow. Otherwise it would grow without end.",
    ],
    needs: &[Need::Pacing],
    params: &[DELTA, MODE],
    build: |setup, values| Box::new(Copa::new(setup, values)),
    receiver: None,
    router: None,
};

/// The direction of the window over a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
    /// The window stayed, or nothing is known yet.
    Neither,
}

/// How fast the window moves (§2.1 step 4).
#[derive(Clone, Copy, Debug)]
struct Velocity {
    /// v: in a round trip the window moves by v/delta packets.
    value: f64,
    direction: Direction,
    /// The number of round trips in a row with the same direction as the one before.
    repeated: u32,
    /// The window at the beginning of this round trip.
    cwnd: f64,
}

impl Velocity {
    /// v doubles once the direction has stayed for this number of round trips. In equilibrium it
    /// stays for 2.5.
    const PATIENCE: u32 = 3;

    fn new(cwnd: f64) -> Velocity {
        Velocity {
            value: 1.0,
            direction: Direction::Neither,
            repeated: 0,
            cwnd,
        }
    }

    /// A round trip is over, with the window at `cwnd` packets, `below` its target or not. In the
    /// paper the two windows alone give the direction. A v from the way up then doubles once more
    /// although the window has begun to fall. It throws the window far below its target, up again,
    /// and so on without end: on a link that became four times as fast half of the rate was used.
    /// mvfst resets v at every turn, but has no competitive mode that could mistake a slowly
    /// falling queue for other flows'.
    fn on_round(&mut self, cwnd: f64, below: bool) {
        let direction = if cwnd > self.cwnd {
            Direction::Up
        } else if cwnd < self.cwnd {
            Direction::Down
        } else {
            Direction::Neither
        };
        let ahead = if below {
            Direction::Up
        } else {
            Direction::Down
        };
        if direction == self.direction && direction == ahead {
            self.repeated += 1;
            if self.repeated >= Self::PATIENCE {
                self.value *= 2.0;
            }
        } else {
            (self.value, self.repeated) = (1.0, 0);
        }
        (self.direction, self.cwnd) = (direction, cwnd);
    }

    /// As in genericCC, an acknowledgement moves the window by at most a packet, which doubles it
    /// in a round trip.
    fn bound(&mut self, delta: f64, cwnd: f64) {
        self.value = self.value.min(delta * cwnd).max(1.0);
    }
}

/// Measurements of recent RTTs (§2.1, §2.2).
#[derive(Debug)]
struct Rtts {
    long: Extreme,
    half_round: Extreme,
    four_rounds: Extreme,
    /// RTTmin: the RTT of the path without a queue.
    min: Duration,
    /// RTTstanding: the RTT without the jitter of acknowledgements.
    standing: Duration,
    /// RTTmax: the largest recent RTT.
    max: Duration,
}

impl Rtts {
    /// The window of RTTmin.
    const LONG: Duration = Duration::from_secs(10);
    /// The smallest RTT. A host with a coarse clock may measure zero.
    const MIN_RTT: Duration = Duration::from_micros(1);

    fn new() -> Rtts {
        Rtts {
            long: Extreme::min(),
            half_round: Extreme::min(),
            four_rounds: Extreme::max(),
            min: Duration::ZERO,
            standing: Duration::ZERO,
            max: Duration::ZERO,
        }
    }

    fn update(&mut self, f: &Feedback<'_>, rtt: Duration) {
        let (rtt, smoothed) = (rtt.max(Self::MIN_RTT), f.rtt_stats.smoothed);
        self.min = self.long.update(f.now, Self::LONG, rtt);
        self.standing = self.half_round.update(f.now, smoothed / 2, rtt);
        self.max = self.four_rounds.update(f.now, smoothed * 4, rtt);
    }

    /// d_q.
    fn queueing(&self) -> Duration {
        self.standing.saturating_sub(self.min)
    }

    /// §2.2: the queue is below a tenth of its recent range.
    fn is_nearly_empty(&self) -> bool {
        self.queueing() * 10 <= self.max.saturating_sub(self.min)
    }
}

/// The state that a spurious timeout restores.
#[derive(Clone, Copy, Debug)]
struct Saved {
    cwnd: f64,
    slow_start: bool,
}

/// The state of one Copa flow.
#[derive(Debug)]
pub struct Copa {
    mss: f64,
    default_delta: f64,
    mode: &'static str,
    cwnd: f64,
    delta: f64,
    slow_start: bool,
    velocity: Velocity,
    rtts: Rtts,
    rounds: RoundCounter,
    /// The round in which the queue was last nearly empty.
    empty_round: u64,
    competitive: bool,
    loss_guard: LossGuard,
    saved: Option<Saved>,
}

impl Copa {
    /// The smallest window, as in genericCC.
    const MIN_CWND: f64 = 2.0;
    /// §2.2: Copa's own flows empty the queue once in five round trips.
    const EMPTY_WITHIN: u64 = 5;

    /// A flow at its initial window, in slow start.
    pub fn new(setup: &Setup, values: &Values) -> Copa {
        let mss = setup.mss.as_f64();
        let cwnd = (setup.initial_cwnd.as_f64() / mss).max(Self::MIN_CWND);
        let delta = values.number(&DELTA);
        let mode = values.choice(&MODE);
        Copa {
            mss,
            default_delta: delta,
            mode,
            cwnd,
            delta,
            slow_start: true,
            velocity: Velocity::new(cwnd),
            rtts: Rtts::new(),
            rounds: RoundCounter::default(),
            empty_round: 0,
            competitive: mode == "competitive",
            loss_guard: LossGuard::default(),
            saved: None,
        }
    }

    /// §2.2: do other flows keep the queue full?
    fn choose_mode(&mut self) {
        let round = self.rounds.count();
        if self.rtts.is_nearly_empty() {
            self.empty_round = round;
        }
        if self.mode == "auto" {
            self.competitive = round > self.empty_round + Self::EMPTY_WITHIN;
        }
    }

    /// §2.2: in competitive mode 1/delta is a Reno window. It grows by one a round trip, and loss
    /// halves it.
    fn adapt_delta(&mut self, new_round: bool, lost: bool) {
        if !self.competitive {
            self.delta = self.default_delta;
        } else if lost {
            self.delta = (2.0 * self.delta).min(self.default_delta);
        } else if new_round {
            self.delta /= 1.0 + self.delta;
        }
    }

    /// §2.1 steps 2 and 3: is the rate, window over RTTstanding, at most the target 1/(delta d_q)?
    fn is_below_target(&self) -> bool {
        let queueing = self.rtts.queueing().as_secs_f64();
        self.cwnd * self.delta * queueing <= self.rtts.standing.as_secs_f64()
    }

    /// The window does not grow unless at least half of it was in flight (`in_use`).
    fn move_window(&mut self, acked: f64, in_use: bool) {
        let below = self.is_below_target();
        if self.slow_start && below {
            if in_use {
                self.cwnd += acked;
            }
            return;
        }
        if self.slow_start {
            self.slow_start = false;
            self.velocity = Velocity::new(self.cwnd);
        }
        self.velocity.bound(self.delta, self.cwnd);
        let step = acked * self.velocity.value / (self.delta * self.cwnd);
        if !below {
            self.cwnd = (self.cwnd - step).max(Self::MIN_CWND);
        } else if in_use {
            self.cwnd += step;
        }
    }
}

impl CongestionControl for Copa {
    fn on_feedback(&mut self, f: &Feedback<'_>) {
        if f.undo
            && let Some(saved) = self.saved.take()
        {
            self.cwnd = self.cwnd.max(saved.cwnd);
            self.slow_start = saved.slow_start;
        }
        let new_round = self.rounds.on_feedback(f);
        if let Some(rtt) = f.rtt {
            self.rtts.update(f, rtt);
            self.choose_mode();
        }
        self.adapt_delta(new_round, f.congestion == Some(Congestion::Loss));
        if new_round && !self.slow_start {
            let below = self.is_below_target();
            self.velocity.on_round(self.cwnd, below);
        }
        if !self.rtts.standing.is_zero() {
            let in_use = f.prior_in_flight.as_f64() * 2.0 >= self.cwnd * self.mss;
            self.move_window(f.acked_bytes.as_f64() / self.mss, in_use);
        }
        let packets = |bytes: Bytes| bytes.as_f64() / self.mss;
        let (acked, lost) = (packets(f.acked_bytes), packets(f.lost_bytes));
        if self.loss_guard.on_feedback(acked, lost, new_round) {
            self.cwnd = (self.cwnd * LossGuard::DECREASE).max(Self::MIN_CWND);
            self.velocity = Velocity::new(self.cwnd);
        }
    }

    /// The paper says nothing about timeouts. As at the flow's beginning, nothing is known of the
    /// rate.
    fn on_rto(&mut self, rto: &Rto<'_>) {
        if rto.consecutive == 1 {
            self.saved = Some(Saved {
                cwnd: self.cwnd,
                slow_start: self.slow_start,
            });
        }
        self.cwnd = Self::MIN_CWND;
        self.slow_start = true;
    }

    /// §2.1: the pacing rate is two windows per round trip, so that the window limits the rate and
    /// not the pacing.
    fn control(&self) -> Control {
        let cwnd = Bytes::from_f64(self.cwnd * self.mss);
        if self.rtts.standing.is_zero() {
            return Control::window(cwnd);
        }
        Control::paced(cwnd, Rate::from_bytes_per(cwnd * 2, self.rtts.standing))
    }

    /// §2.2: in default mode Copa ignores loss, unless it is heavy.
    fn owns_recovery(&self) -> bool {
        true
    }

    fn probe(&self, probe: &mut dyn Probe) {
        probe.value("delta", self.delta);
        probe.value("velocity", self.velocity.value);
        probe.value("competitive", f64::from(u8::from(self.competitive)));
        probe.value("queueing_ms", self.rtts.queueing().as_millis_f64());
        probe.value("rtt_standing_ms", self.rtts.standing.as_millis_f64());
        probe.value("rtt_min_ms", self.rtts.min.as_millis_f64());
    }
}
