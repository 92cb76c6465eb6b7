//! The delay-based rate: additive or multiplicative increase, multiplicative decrease
//! (draft-ietf-rmcat-gcc-02 §5.5; `aimd_rate_control.cc`, `link_capacity_estimator.cc`).

use super::trendline::Usage;
use crate::{Duration, Time};

/// beta: the factor of a decrease.
const BACKOFF: f64 = 0.85;
const INITIAL_RTT: Duration = Duration::from_millis(200);
/// The growth of 8% a second (eta of the draft's §5.5).
const GROWTH: f64 = 1.08;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Hold,
    Increase,
}

/// The rate that the link carried when it was overused, in kbit/s.
#[derive(Debug)]
struct LinkCapacity {
    estimate: Option<f64>,
    /// The variance divided by the estimate.
    deviation: f64,
}

impl LinkCapacity {
    const ALPHA: f64 = 0.05;

    fn on_overuse(&mut self, sample: f64) {
        let estimate = self
            .estimate
            .map_or(sample, |e| (1.0 - Self::ALPHA) * e + Self::ALPHA * sample);
        self.estimate = Some(estimate);
        let error = estimate - sample;
        let normed = error * error / estimate.max(1.0);
        let deviation = (1.0 - Self::ALPHA) * self.deviation + Self::ALPHA * normed;
        self.deviation = deviation.clamp(0.4, 2.5);
    }

    /// Forgets the estimate if `kbps` is three standard deviations off in the direction of
    /// `is_off`.
    fn check(&mut self, is_off: impl Fn(f64, f64) -> bool) {
        if let Some(estimate) = self.estimate {
            let deviation = 3.0 * libm::sqrt(self.deviation * estimate);
            if is_off(estimate, deviation) {
                self.estimate = None;
            }
        }
    }
}

/// The delay-based rate.
#[derive(Debug)]
pub(super) struct Aimd {
    pub(super) rate: f64,
    min_rate: f64,
    state: State,
    capacity: LinkCapacity,
    throughput: f64,
    changed: Option<Time>,
    rtt: Duration,
}

impl Aimd {
    pub(super) fn new(start_rate: f64, min_rate: f64) -> Aimd {
        Aimd {
            rate: start_rate.max(min_rate),
            min_rate,
            state: State::Hold,
            capacity: LinkCapacity {
                estimate: None,
                deviation: 0.4,
            },
            throughput: start_rate,
            changed: None,
            rtt: INITIAL_RTT,
        }
    }

    pub(super) fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    /// A probe has measured the rate.
    pub(super) fn set_rate(&mut self, now: Time, rate: f64) {
        self.rate = rate.max(self.min_rate);
        self.changed = Some(now);
    }

    /// Is it time to reduce again? Once in an RTT of 10 to 200 ms, or if less than half arrives.
    pub(super) fn time_to_reduce(&self, now: Time, throughput: f64) -> bool {
        let (least, most) = (Duration::from_millis(10), Duration::from_millis(200));
        let interval = self.rtt.clamp(least, most);
        let waited = self.changed.is_none_or(|t| now.since(t) >= interval);
        waited || throughput < 0.5 * self.rate
    }

    /// Draft §5.5: updates the rate with the detector's result and the rate that arrives.
    pub(super) fn update(&mut self, now: Time, usage: Usage, throughput: Option<f64>) {
        self.throughput = throughput.unwrap_or(self.throughput);
        match usage {
            Usage::Normal if self.state == State::Hold => {
                self.changed = Some(now);
                self.state = State::Increase;
            }
            Usage::Normal => {}
            Usage::Over => return self.decrease(now),
            Usage::Under => self.state = State::Hold,
        }
        if self.state == State::Increase {
            self.increase(now);
        }
    }

    fn increase(&mut self, now: Time) {
        let arriving = self.throughput / 1e3;
        self.capacity
            .check(|estimate, deviation| arriving > estimate + deviation);
        let limit = 1.5 * self.throughput + 10_000.0;
        if self.rate < limit {
            let elapsed = now.since(self.changed.unwrap_or(now)).as_secs_f64();
            let step = if self.capacity.estimate.is_some() {
                self.near_capacity_slope() * elapsed
            } else {
                let factor = libm::pow(GROWTH, elapsed.min(1.0));
                (self.rate * (factor - 1.0)).max(1000.0)
            };
            self.rate = (self.rate + step).min(limit).max(self.min_rate);
        }
        self.changed = Some(now);
    }

    /// The slope in bits a second per second: one packet in twice the sum of RTT and 100 ms. The
    /// packet is one of a frame at 30 Hz in packets of 1200 bytes.
    pub(super) fn near_capacity_slope(&self) -> f64 {
        let frame_bits = self.rate / 30.0;
        let packets = libm::ceil(frame_bits / (8.0 * 1200.0)).max(1.0);
        let response = 2.0 * (self.rtt + Duration::from_millis(100)).as_secs_f64();
        (frame_bits / packets / response).max(4000.0)
    }

    fn decrease(&mut self, now: Time) {
        let mut rate = BACKOFF * self.throughput;
        if rate > self.rate
            && let Some(capacity) = self.capacity.estimate
        {
            rate = BACKOFF * capacity * 1e3;
        }
        self.rate = rate.min(self.rate).max(self.min_rate);
        let arriving = self.throughput / 1e3;
        self.capacity
            .check(|estimate, deviation| arriving < estimate - deviation);
        self.capacity.on_overuse(arriving);
        // The rate is held until the queue is empty.
        self.state = State::Hold;
        self.changed = Some(now);
    }
}
