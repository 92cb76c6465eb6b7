//! The losses that the rules of Vivace's rate control (NSDI 2018 §4, b = 0) cause by themselves:
//! with a fluid queue instead of packets, losses are known exactly. If these agree with the losses
//! of `vivace-loss`, its rules cause them.

use crate::check::{Check, Outside};
use crate::networks::{fixed, metrics, options};

/// A fluid queue; Mbit/s, Mbit, seconds.
struct Queue {
    capacity: f64,
    buffer: f64,
    backlog: f64,
    time: f64,
    /// The amount sent since `COUNTED`.
    sent: f64,
    lost: f64,
}

/// Only the time from here on counts (s).
const COUNTED: f64 = 50.0;
/// The run is long because the order of trials is random: runs of 300 s differ by a tenth.
const END: f64 = 2500.0;

impl Queue {
    const STEP: f64 = 1e-3;

    /// The lost share of what arrives at `rate` for `seconds`.
    fn take(&mut self, rate: f64, seconds: f64) -> f64 {
        let (mut sent, mut lost) = (0.0, 0.0);
        for _ in 0..(seconds / Self::STEP).round().max(1.0) as u64 {
            self.backlog = (self.backlog + (rate - self.capacity) * Self::STEP).max(0.0);
            lost += (self.backlog - self.buffer).max(0.0);
            sent += rate * Self::STEP;
            self.backlog = self.backlog.min(self.buffer);
            self.time += Self::STEP;
        }
        if self.time > COUNTED {
            self.sent += sent;
            self.lost += lost;
        }
        lost / sent
    }
}

/// §2.2 with b = 0.
#[expect(
    clippy::disallowed_methods,
    reason = "a model to a few percent: its last bits do not matter"
)]
fn utility(x: f64, loss: f64) -> f64 {
    x.powf(0.9) - 11.35 * x * loss
}

/// The share that a flow loses. Trials last a round trip, 5% above and below the rate in random
/// order. A step needs two pairs that agree, or one after two steps in the same direction; then the
/// last result is waited for. theta_0 = 1, omega_0 = .05, delta = .1.
fn loss(capacity: f64, rtt: f64, buffer: f64) -> f64 {
    let mut queue = Queue {
        capacity,
        buffer,
        backlog: 0.0,
        time: 0.0,
        sent: 0.0,
        lost: 0.0,
    };
    let mut random = 1_u64;
    let mut rate = capacity / 2.0;
    let (mut direction, mut tau, mut k) = (0.0, 0.0, 0.0);
    while queue.time < END {
        let pairs = if tau >= 2.0 { 1 } else { 2 };
        let mut gradients = Vec::new();
        for _ in 0..pairs {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let first = if random >> 63 == 0 { 1.0 } else { -1.0 };
            let mut worth = |sign: f64| {
                let x = rate * (1.0 + 0.05 * sign);
                let seconds = rtt + queue.backlog / capacity;
                utility(x, queue.take(x, seconds))
            };
            let (a, b) = (worth(first), worth(-first));
            gradients.push(first * (a - b) / (0.1 * rate));
        }
        let seconds = rtt + queue.backlog / capacity;
        queue.take(rate, seconds);
        let gradient = gradients.iter().sum::<f64>() / f64::from(pairs);
        let sign = gradients[0].signum();
        if gradients.iter().any(|g| g * sign <= 0.0) {
            (direction, tau, k) = (0.0, 0.0, 0.0);
            continue;
        }
        if sign != direction {
            (direction, tau, k) = (sign, 0.0, 0.0);
        }
        tau += 1.0;
        let confidence = if tau <= 3.0 { tau } else { 2.0 * tau - 3.0 };
        let (step, bound) = (confidence * gradient.abs(), rate * (0.05 + 0.1 * k));
        k = match step > bound {
            true => k + 1.0,
            false => ((step / rate - 0.05) / 0.1).ceil().max(0.0),
        };
        rate = (rate + sign * step.min(bound)).max(0.1);
    }
    queue.lost / queue.sent
}

/// Links range from one where a first step is a tenth to one where it is half a percent.
#[test]
fn vivace_losses_follow_from_its_rules() {
    for (what, mbps, one_way_ms, packets) in [
        ("6 Mbit/s, 40 ms, 40 packets: loss", 6.0, 20, 40),
        ("12 Mbit/s, 40 ms, 40 packets: loss", 12.0, 20, 40),
        ("12 Mbit/s, 120 ms, 120 packets: loss", 12.0, 60, 120),
        ("50 Mbit/s, 30 ms, 250 packets: loss", 50.0, 15, 250),
        ("100 Mbit/s, 30 ms, 250 packets: loss", 100.0, 15, 250),
    ] {
        let network = fixed(mbps, one_way_ms, packets, 1500);
        let ours = metrics(&network, "vivace-loss", options(600.0, COUNTED));
        let model = loss(mbps, 2e-3 * one_way_ms as f64, 0.012 * packets as f64);
        Check {
            scheme: "vivace-loss",
            what,
            unit: "",
            source: "a fluid model of NSDI 2018 §4",
            outside: Outside::Percent((model * 1e3).round() / 1e3, 20.0),
            ours: ours.loss.expect("packets"),
        }
        .holds();
    }
}
