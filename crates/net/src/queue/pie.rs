//! PIE (RFC 8033): drops at random, with a probability that a controller adjusts by the queueing
//! delay.

use headway_cc::{Bytes, Duration, Stream, Time};

use super::backlog::{Backlog, Waiting};
use super::{Limits, Queue};
use crate::Packet;

/// Parameters of PIE, with the RFC's names in brackets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieParams {
    /// The target queueing delay (QDELAY_REF).
    pub target: Duration,
    /// The interval of the probability's updates (T_UPDATE). It has to be over zero.
    pub update: Duration,
    /// The longest burst without a drop (MAX_BURST).
    pub max_burst: Duration,
    /// The weight of the delay beyond the target, 1/s (alpha).
    pub alpha: f64,
    /// The weight of a change of the delay, 1/s (beta).
    pub beta: f64,
    /// How these weights shrink while the probability is small.
    pub tuning: PieTuning,
    /// How the delay is measured.
    pub delay: PieDelay,
    /// Marks ECN-capable packets instead of dropping them, while the probability is under
    /// [`ecn_threshold`](Self::ecn_threshold).
    pub ecn: bool,
    /// From this probability on, ECN-capable packets are dropped too (MARK_ECNTH).
    pub ecn_threshold: f64,
}

/// The scale of PIE's weights at a probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieTuning {
    /// RFC 8033 §4.2: seven steps; from 10% on, no more than 2% at once (§5.5).
    Rfc8033,
    /// The three steps of the early draft, as in mahimahi.
    Mahimahi,
}

/// How PIE measures the queueing delay (RFC 8033 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieDelay {
    /// The wait of the packet that left last; zero with an empty queue.
    Timestamps,
    /// The backlog divided by the mean rate at which the queue has drained. The rate is measured
    /// over `threshold` bytes at a time, and each measurement has a weight of 1/8 (mahimahi; RFC
    /// 8033 §5.2 has another weight).
    DepartureRate {
        /// DQ_THRESHOLD.
        threshold: Bytes,
    },
}

impl Default for PieParams {
    /// RFC 8033 §4.2 to §4.4 and §5.1: 15 ms, every 15 ms, bursts of 150 ms; no marking.
    fn default() -> PieParams {
        PieParams {
            target: Duration::from_millis(15),
            update: Duration::from_millis(15),
            max_burst: Duration::from_millis(150),
            alpha: 0.125,
            beta: 1.25,
            tuning: PieTuning::Rfc8033,
            delay: PieDelay::Timestamps,
            ecn: false,
            ecn_threshold: 0.1,
        }
    }
}

impl PieParams {
    /// mahimahi's `pie`: an update every 30 ms, and the RFC's weights, which are per second there,
    /// applied to milliseconds. The RFC's other numbers are its arguments `qdelay_ref` and
    /// `max_burst`.
    pub fn mahimahi(target: Duration, max_burst: Duration) -> PieParams {
        PieParams {
            target,
            max_burst,
            update: Duration::from_millis(30),
            alpha: 125.0,
            beta: 1250.0,
            tuning: PieTuning::Mahimahi,
            delay: PieDelay::DepartureRate {
                threshold: Bytes::new(16384),
            },
            ..PieParams::default()
        }
    }
}

impl PieTuning {
    /// The factor of the controller's step at this probability.
    fn scale(self, probability: f64) -> f64 {
        // For each limit of the probability, the divisor of the step below it.
        let (steps, beyond): (&[(f64, f64)], f64) = match self {
            PieTuning::Rfc8033 => (
                &[
                    (1e-6, 2048.0),
                    (1e-5, 512.0),
                    (1e-4, 128.0),
                    (1e-3, 32.0),
                    (1e-2, 8.0),
                    (1e-1, 2.0),
                ],
                1.0,
            ),
            PieTuning::Mahimahi => (&[(1e-2, 128.0), (1e-1, 32.0)], 16.0),
        };
        let divisor = steps.iter().find(|step| probability < step.0);
        1.0 / divisor.map_or(beyond, |step| step.1)
    }
}

/// The controller: changes the probability at every update (RFC 8033 §4.2, §4.4).
#[derive(Clone, Debug, PartialEq)]
struct Controller {
    /// drop_prob_.
    probability: f64,
    /// The delay at the last update, s (qdelay_old_).
    last_delay_s: f64,
    /// The remaining time without drops in a burst (burst_allowance_).
    burst_left: Duration,
}

impl Controller {
    /// Does one update. `delay_s` is the current delay, `None` if unknown. Returns whether the
    /// queue is calm again, so that the next burst has its full allowance.
    fn update(&mut self, params: &PieParams, delay_s: Option<f64>) -> bool {
        let target_s = params.target.as_secs_f64();
        let (is_known, delay_s) = (delay_s.is_some(), delay_s.unwrap_or(0.0));
        let last_delay_s = std::mem::replace(&mut self.last_delay_s, delay_s);
        let mut step = params.alpha * (delay_s - target_s) + params.beta * (delay_s - last_delay_s);
        step *= params.tuning.scale(self.probability);
        if params.tuning == PieTuning::Rfc8033 && self.probability >= 0.1 {
            step = step.min(0.02);
        }
        self.probability += step;
        if is_known && delay_s == 0.0 && last_delay_s == 0.0 {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        let is_calm =
            is_known && self.probability == 0.0 && delay_s.max(last_delay_s) < target_s / 2.0;
        self.burst_left = match is_calm {
            true => params.max_burst,
            false => self.burst_left.saturating_sub(params.update),
        };
        is_calm
    }
}

/// The rate at which a queue drains ([`PieDelay::DepartureRate`]).
#[derive(Clone, Debug, Default)]
struct DrainRate {
    bytes_per_s: Option<f64>,
    /// The current measurement: when it began, and how many bytes have left since.
    measured: Option<(Time, u64)>,
}

impl DrainRate {
    /// `size` bytes have left, and `waiting` remain. Returns the duration of a measurement that
    /// ends with them.
    fn on_departure(
        &mut self,
        now: Time,
        size: u64,
        waiting: u64,
        threshold: u64,
    ) -> Option<Duration> {
        if waiting >= threshold && self.measured.is_none() {
            self.measured = Some((now, 0));
        }
        let (since, bytes) = self.measured.as_mut()?;
        *bytes += size;
        let took = now.since(*since);
        if *bytes <= threshold || took.is_zero() {
            return None;
        }
        let sample = *bytes as f64 / took.as_secs_f64();
        let mean = self.bytes_per_s.get_or_insert(sample);
        *mean += (sample - *mean) / 8.0;
        self.measured = (waiting >= threshold).then_some((now, 0));
        Some(took)
    }
}

#[derive(Debug)]
pub(super) struct Pie {
    backlog: Backlog,
    limits: Limits,
    params: PieParams,
    stream: Stream,
    controller: Controller,
    /// When the probability was last updated. Updates are carried out at the next event: in between
    /// the queue has not changed.
    updated: Time,
    /// How long the packet that left last had waited.
    sojourn: Duration,
    drain: DrainRate,
}

impl Pie {
    /// With no more than two packets of this size waiting, nothing is dropped (MEAN_PKTSIZE).
    const PACKET: Bytes = Bytes::new(1500);

    pub(super) fn new(params: PieParams, limits: Limits, overhead: u32, stream: Stream) -> Pie {
        let burst_left = match params.tuning {
            PieTuning::Rfc8033 => params.max_burst,
            PieTuning::Mahimahi => Duration::ZERO,
        };
        Pie {
            backlog: Backlog::new(overhead),
            limits,
            params,
            stream,
            controller: Controller {
                probability: 0.0,
                last_delay_s: 0.0,
                burst_left,
            },
            updated: Time::ZERO,
            sojourn: Duration::ZERO,
            drain: DrainRate::default(),
        }
    }

    fn delay_s(&self) -> Option<f64> {
        match self.params.delay {
            PieDelay::Timestamps => Some(self.sojourn.as_secs_f64()),
            PieDelay::DepartureRate { .. } => {
                let rate = self.drain.bytes_per_s?;
                Some(self.backlog.waiting().bytes as f64 / rate)
            }
        }
    }

    /// Carries out the updates that were due before `now`.
    fn catch_up(&mut self, now: Time) {
        while now.since(self.updated) >= self.params.update {
            let before = self.controller.clone();
            let delay_s = self.delay_s();
            if self.controller.update(&self.params, delay_s) {
                // For the next burst the measurement begins again.
                self.drain = DrainRate::default();
            }
            self.updated += self.params.update;
            if self.controller == before {
                // The remaining updates would change nothing.
                let late = now.since(self.updated).as_nanos();
                let step = self.params.update.as_nanos();
                self.updated += Duration::from_nanos(late - late % step);
            }
        }
    }

    /// Should an arrival be a signal of congestion (`drop_early`, RFC 8033 §4.1)?
    fn signals(&mut self) -> bool {
        let Controller {
            probability,
            last_delay_s,
            burst_left,
        } = self.controller;
        let calm = last_delay_s < self.params.target.as_secs_f64() / 2.0 && probability < 0.2;
        burst_left.is_zero()
            && !calm
            && !self.backlog.at_most(Pie::PACKET * 2)
            && self.stream.chance(probability)
    }
}

impl Queue for Pie {
    fn enqueue(&mut self, now: Time, mut packet: Packet, dropped: &mut Vec<Packet>) {
        self.catch_up(now);
        let is_taken = self.backlog.has_room(&packet, &self.limits)
            && (!self.signals() || {
                self.params.ecn
                    && self.controller.probability < self.params.ecn_threshold
                    && packet.mark()
            });
        if is_taken {
            self.backlog.push(packet);
        } else {
            dropped.push(packet);
        }
    }

    fn dequeue(&mut self, now: Time, _: &mut Vec<Packet>) -> Option<Packet> {
        self.catch_up(now);
        let packet = self.backlog.pop()?;
        let Waiting { packets, bytes } = self.backlog.waiting();
        match self.params.delay {
            PieDelay::Timestamps => {
                self.sojourn = match packets {
                    0 => Duration::ZERO,
                    _ => now.since(packet.arrived),
                }
            }
            PieDelay::DepartureRate { threshold } => {
                let size = self.backlog.cost(&packet);
                if let Some(took) = self.drain.on_departure(now, size, bytes, threshold.get()) {
                    let left = &mut self.controller.burst_left;
                    *left = left.saturating_sub(took);
                }
            }
        }
        Some(packet)
    }

    fn waiting(&self) -> Waiting {
        self.backlog.waiting()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::packet;

    fn controller(probability: f64, last_delay_ms: f64) -> Controller {
        Controller {
            probability,
            last_delay_s: last_delay_ms / 1e3,
            burst_left: Duration::ZERO,
        }
    }

    /// The probability after an update.
    fn step(params: &PieParams, from: f64, last_delay_ms: f64, delay_ms: f64) -> f64 {
        let mut controller = controller(from, last_delay_ms);
        controller.update(params, Some(delay_ms / 1e3));
        controller.probability
    }

    /// RFC 8033 §4.2 by hand: from 0 to 30 ms the step is .125 * .015 + 1.25 * .03 = .039375; at
    /// constant 30 ms it is .125 * .015 = .001875. Each is divided as the probability requires.
    #[test]
    fn the_controllers_step_matches_the_rfc() {
        let params = PieParams::default();
        let near = |ours: f64, theirs: f64| {
            assert!(
                (ours - theirs).abs() < 1e-12 + 1e-9 * theirs,
                "{ours} for {theirs}"
            );
        };
        near(step(&params, 0.0, 0.0, 30.0), 0.039375 / 2048.0);
        for (from, divisor) in [
            (0.9e-6, 2048.0),
            (0.9e-5, 512.0),
            (0.9e-4, 128.0),
            (0.9e-3, 32.0),
            (0.9e-2, 8.0),
            (0.09, 2.0),
            (0.11, 1.0),
        ] {
            near(step(&params, from, 30.0, 30.0), from + 0.001875 / divisor);
        }
        // §5.5: .125 * .085 + 1.25 * .1 is more than 2%.
        near(step(&params, 0.2, 0.0, 100.0), 0.22);
        near(step(&params, 0.09, 0.0, 100.0), 0.09 + 0.135625 / 2.0);
        // With an empty queue it decays, and it stays a probability.
        near(step(&params, 0.5, 0.0, 0.0), (0.5 - 0.001875) * 0.98);
        near(step(&params, 0.001, 100.0, 0.0), 0.0);
        near(step(&params, 0.99, 0.0, 1000.0), 1.0);
    }

    /// mahimahi computes in ms: (.125 * 30 + 1.25 * 80) / 128 from 0 to 80 ms for a target of 50.
    #[test]
    fn mahimahis_step_is_coarser() {
        let ms = Duration::from_millis;
        let params = PieParams::mahimahi(ms(50), ms(100));
        for (from, divisor) in [(0.0, 128.0), (0.05, 32.0), (0.1, 16.0)] {
            let ours = step(&params, from, 70.0, 80.0);
            let theirs: f64 = from + (0.125 * 30.0 + 1.25 * 10.0) / divisor;
            assert!((ours - theirs.min(1.0)).abs() < 1e-9, "{ours} for {theirs}");
        }
    }

    #[test]
    fn a_burst_passes_without_drops() {
        let params = PieParams::default();
        let mut calm = controller(0.0, 0.0);
        assert!(calm.update(&params, Some(0.0)));
        assert_eq!(calm.burst_left, params.max_burst);
        // 150 ms are ten updates.
        for update in 1..=10 {
            assert!(!calm.update(&params, Some(0.1)));
            assert_eq!(calm.burst_left.is_zero(), update == 10);
        }
    }

    #[test]
    fn the_drain_is_measured() {
        let mut drain = DrainRate::default();
        let at = Time::from_millis;
        // Nothing is measured while less than the threshold waits.
        assert_eq!(drain.on_departure(at(1), 1500, 2_000, 3_000), None);
        assert_eq!(drain.bytes_per_s, None);
        // The first packet begins a measurement, the third ends it: 4500 bytes in 2 ms.
        for (ms, ends) in [(10, None), (11, None), (12, Some(Duration::from_millis(2)))] {
            assert_eq!(drain.on_departure(at(ms), 1500, 5_000, 3_000), ends);
        }
        assert_eq!(drain.bytes_per_s, Some(2_250_000.0));
        // Half of that time for the next measurement, with a weight of an eighth.
        for ms in [12, 14, 16] {
            drain.on_departure(at(ms), 1500, 2_000, 3_000);
        }
        assert_eq!(drain.bytes_per_s, Some(2_250_000.0 - 1_125_000.0 / 8.0));
        assert_eq!(drain.measured, None);
    }

    /// RFC 8033 §4.1: with two packets waiting none is dropped, whatever overhead the link counts.
    #[test]
    fn two_packets_may_wait_without_a_drop() {
        for overhead in [0, 4] {
            let stream = Stream::new(1, "pie");
            let mut queue = Pie::new(PieParams::default(), Limits::NONE, overhead, stream);
            queue.controller = controller(1.0, 0.1);
            let mut dropped = Vec::new();
            for number in 0..4 {
                queue.enqueue(Time::ZERO, packet(0, number, 1500), &mut dropped);
            }
            assert_eq!((queue.len(), dropped.len()), (3, 1), "{overhead}");
        }
    }

    /// Updates that are carried out late have the same result as those of a timer.
    #[test]
    fn late_updates_have_the_result_of_timely_ones() {
        let run = |poll_ms: u64| {
            let mut queue = Pie::new(PieParams::default(), Limits::NONE, 0, Stream::new(1, "pie"));
            let mut dropped = Vec::new();
            for number in 0..200 {
                queue.enqueue(Time::ZERO, packet(0, number, 1500), &mut dropped);
            }
            for ms in (0..10_000u64).filter(|ms| ms % poll_ms == 0 || ms % 500 == 0) {
                queue.catch_up(Time::from_millis(ms));
                if ms % 500 == 0 {
                    queue.dequeue(Time::from_millis(ms), &mut dropped);
                }
            }
            queue.catch_up(Time::from_millis(10_000));
            (queue.controller, queue.updated)
        };
        assert_eq!(run(1), run(500));
        assert!(run(1).0.probability > 0.0);
    }
}
