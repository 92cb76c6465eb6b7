//! How slow start ends before a loss ends it.

use crate::{Duration, Feedback, RoundCounter, Time};

/// The number of RTT samples that a round needs to count, in both algorithms.
const MIN_SAMPLES: u32 = 8;
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);

/// The action of slow start on a feedback.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// The window grows by the acknowledged packets, at most `limit`, over `divisor`.
    Grow {
        /// RFC 9406's L, in packets.
        limit: f64,
        /// 1, or more in Conservative Slow Start.
        divisor: f64,
    },
    /// Slow start ends.
    Leave,
}

const DOUBLE: Step = Step::Grow {
    limit: f64::INFINITY,
    divisor: 1.0,
};

/// The three variants.
#[derive(Debug)]
pub enum HyStart {
    /// Slow start lasts until a loss.
    Off,
    /// Linux's HyStart.
    Classic(Classic),
    /// RFC 9406's HyStart++.
    PlusPlus(PlusPlus),
}

impl HyStart {
    /// The variant with the name of the parameter's value.
    pub fn new(name: &str) -> HyStart {
        match name {
            "hystart++" => HyStart::PlusPlus(PlusPlus::default()),
            "classic" => HyStart::Classic(Classic::default()),
            _ => HyStart::Off,
        }
    }

    /// The same variant in its initial state.
    pub fn restarted(&self) -> HyStart {
        match self {
            HyStart::Off => HyStart::Off,
            HyStart::Classic(_) => HyStart::Classic(Classic::default()),
            HyStart::PlusPlus(_) => HyStart::PlusPlus(PlusPlus::default()),
        }
    }

    /// Takes a feedback of slow start. Windows are in packets.
    pub fn step(&mut self, f: &Feedback<'_>, cwnd: f64, ssthresh: f64) -> Step {
        match self {
            HyStart::Classic(classic) => classic.step(f, cwnd),
            // RFC 9406 §4.3: it applies to the first slow start only, since later ones have an
            // ssthresh.
            HyStart::PlusPlus(plus) if ssthresh == f64::INFINITY => plus.step(f),
            _ => DOUBLE,
        }
    }
}

/// The rise of an RTT above `base` that shows a queue.
fn threshold(base: Duration) -> Duration {
    (base / 8).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH)
}

/// The RTT samples of one round.
#[derive(Clone, Copy, Debug)]
struct Samples {
    min: Duration,
    count: u32,
}

impl Default for Samples {
    fn default() -> Samples {
        Samples {
            min: Duration::MAX,
            count: 0,
        }
    }
}

impl Samples {
    fn add(&mut self, rtt: Option<Duration>) {
        if let Some(rtt) = rtt {
            self.min = self.min.min(rtt);
            self.count += 1;
        }
    }

    fn suffice(&self) -> bool {
        self.count >= MIN_SAMPLES
    }
}

/// HyStart++ (RFC 9406 §4.2): when the RTT rises from one round to the next, the window grows more
/// slowly for five rounds. If the RTT falls again, the rise was jitter.
#[derive(Debug, Default)]
pub struct PlusPlus {
    rounds: RoundCounter,
    last: Samples,
    current: Samples,
    css: Option<Css>,
}

/// The state of Conservative Slow Start.
#[derive(Clone, Copy, Debug)]
struct Css {
    baseline: Duration,
    rounds: u32,
}

impl PlusPlus {
    const CSS_GROWTH_DIVISOR: f64 = 4.0;
    const CSS_ROUNDS: u32 = 5;
    /// L without pacing.
    const LIMIT: f64 = 8.0;

    fn step(&mut self, f: &Feedback<'_>) -> Step {
        if self.rounds.on_feedback(f) {
            self.last = std::mem::take(&mut self.current);
            if let Some(css) = &mut self.css {
                css.rounds += 1;
                if css.rounds >= Self::CSS_ROUNDS {
                    return Step::Leave;
                }
            }
        }
        self.current.add(f.rtt);
        if self.current.suffice() {
            match self.css {
                None if self.rtt_rose() => {
                    self.css = Some(Css {
                        baseline: self.current.min,
                        rounds: 0,
                    })
                }
                Some(css) if self.current.min < css.baseline => self.css = None,
                _ => {}
            }
        }
        let divisor = if self.css.is_some() {
            Self::CSS_GROWTH_DIVISOR
        } else {
            1.0
        };
        Step::Grow {
            limit: Self::LIMIT,
            divisor,
        }
    }

    fn rtt_rose(&self) -> bool {
        self.last.count > 0 && self.current.min >= self.last.min + threshold(self.last.min)
    }
}

/// HyStart of Linux 4.x and 5.x (`tcp_cubic.c`). From 16 packets on, slow start ends when a train
/// of closely spaced acknowledgements spans half the minimum RTT, or when the RTT has risen.
#[derive(Debug, Default)]
pub struct Classic {
    rounds: RoundCounter,
    round_start: Time,
    /// The end of the train in this round so far.
    train_end: Time,
    current: Samples,
}

impl Classic {
    const LOW_WINDOW: f64 = 16.0;
    const SPACING: Duration = Duration::from_millis(2);

    fn step(&mut self, f: &Feedback<'_>, cwnd: f64) -> Step {
        if self.rounds.on_feedback(f) {
            (self.round_start, self.train_end) = (f.now, f.now);
            self.current = Samples::default();
        }
        if cwnd < Self::LOW_WINDOW {
            return DOUBLE;
        }
        let base = f.rtt_stats.min;
        // A gap ends the train for the rest of the round.
        if f.now.since(self.train_end) <= Self::SPACING {
            self.train_end = f.now;
            if f.now.since(self.round_start) > base / 2 {
                return Step::Leave;
            }
        }
        self.current.add(f.rtt);
        if self.current.suffice() && self.current.min > base + threshold(base) {
            return Step::Leave;
        }
        DOUBLE
    }
}
