//! The loss-based rate at the sender, which also combines all limits (draft-ietf-rmcat-gcc-02 §6;
//! `send_side_bandwidth_estimation.cc`).

use std::collections::VecDeque;

use crate::{Duration, Time};

const INCREASE_INTERVAL: Duration = Duration::from_millis(1000);
const DECREASE_INTERVAL: Duration = Duration::from_millis(300);
const START_PHASE: Duration = Duration::from_millis(2000);
const REPORT_INTERVAL: Duration = Duration::from_millis(1000);
const REPORT_TIMEOUT: Duration = Duration::from_millis(6000);
const MIN_PACKETS: u64 = 20;
const LOW_LOSS: f64 = 0.02;
const HIGH_LOSS: f64 = 0.10;
/// The growth of 8% a second; the draft has 5%.
const GROWTH: f64 = 1.08;
/// `RttBasedBackoff`: beyond this RTT the rate falls, down to a floor.
const RTT_LIMIT: Duration = Duration::from_secs(3);
const RTT_DROP: f64 = 0.8;
const RTT_DROP_INTERVAL: Duration = Duration::from_secs(1);
const RTT_FLOOR: f64 = 5000.0;

/// The sender's own RTT, and the time since the last report.
#[derive(Debug, Default)]
struct Rtt {
    propagation: Duration,
    updated: Option<Time>,
    last_sent: Time,
}

impl Rtt {
    fn corrected(&self, now: Time) -> Duration {
        let silence = self.updated.map_or(Duration::ZERO, |t| now.since(t));
        silence.saturating_sub(now.since(self.last_sent)) + self.propagation
    }
}

/// The target rate.
#[derive(Debug)]
pub(super) struct LossBased {
    pub(super) target: f64,
    delay_limit: f64,
    min_rate: f64,
    max_rate: f64,
    rtt: Rtt,
    /// The running minima of the rates of the last second.
    minima: VecDeque<(Time, f64)>,
    lost: u64,
    expected: u64,
    next_report: Time,
    /// The share of lost packets.
    pub(super) loss: f64,
    first_report: Option<Time>,
    last_report: Option<Time>,
    last_decrease: Option<Time>,
    decreased_since_report: bool,
}

impl LossBased {
    pub(super) fn new(start: f64, min_rate: f64, max_rate: f64) -> LossBased {
        LossBased {
            target: start.min(max_rate).max(min_rate),
            delay_limit: f64::INFINITY,
            min_rate,
            max_rate,
            rtt: Rtt::default(),
            minima: VecDeque::new(),
            lost: 0,
            expected: 0,
            next_report: Time::ZERO,
            loss: 0.0,
            first_report: None,
            last_report: None,
            last_decrease: None,
            decreased_since_report: false,
        }
    }

    pub(super) fn on_sent(&mut self, now: Time) {
        self.rtt.last_sent = now;
        self.rtt.updated.get_or_insert(now);
    }

    pub(super) fn on_rtt(&mut self, now: Time, propagation: Duration) {
        self.rtt.propagation = propagation;
        self.rtt.updated = Some(now);
    }

    /// A probe has measured the rate, and earlier losses no longer count.
    pub(super) fn on_probe_result(&mut self, rate: f64) {
        self.delay_limit = f64::INFINITY;
        self.set_target(rate);
        self.minima.clear();
    }

    /// The limit of the delay-based rate.
    pub(super) fn set_delay_limit(&mut self, rate: f64) {
        self.delay_limit = rate;
        self.set_target(self.target);
    }

    fn set_target(&mut self, rate: f64) {
        let most = self.max_rate.min(self.delay_limit);
        self.target = rate.min(most).max(self.min_rate);
    }

    /// A report says that `lost` of `expected` packets are lost. They are judged once a second.
    pub(super) fn on_report(&mut self, now: Time, lost: u64, expected: u64) {
        self.lost += lost;
        self.expected += expected;
        if now <= self.next_report {
            return;
        }
        self.next_report = now + REPORT_INTERVAL;
        self.first_report.get_or_insert(now);
        if self.expected < MIN_PACKETS {
            return;
        }
        self.loss = self.lost as f64 / self.expected as f64;
        (self.lost, self.expected) = (0, 0);
        self.last_report = Some(now);
        self.decreased_since_report = false;
        self.update(now);
    }

    /// `UpdateEstimate`.
    pub(super) fn update(&mut self, now: Time) {
        if self.rtt.corrected(now) > RTT_LIMIT {
            let spaced = self
                .last_decrease
                .is_none_or(|t| now.since(t) >= RTT_DROP_INTERVAL);
            if spaced && self.target > RTT_FLOOR {
                self.last_decrease = Some(now);
                self.set_target((RTT_DROP * self.target).max(RTT_FLOOR));
            }
            return;
        }
        let in_start_phase = self.first_report.is_none_or(|t| now.since(t) < START_PHASE);
        if self.loss == 0.0
            && in_start_phase
            && self.delay_limit.is_finite()
            && self.delay_limit > self.target
        {
            self.minima.clear();
            self.minima.push_back((now, self.target));
            return self.set_target(self.delay_limit);
        }
        self.update_minima(now);
        if self
            .last_report
            .is_none_or(|t| now.since(t) >= REPORT_TIMEOUT)
        {
            return;
        }
        if self.loss <= LOW_LOSS {
            let least = self.minima.front().map_or(self.target, |m| m.1);
            self.set_target(GROWTH * least + 1000.0);
        } else if self.loss > HIGH_LOSS && !self.decreased_since_report {
            let spacing = DECREASE_INTERVAL + self.rtt.propagation;
            if self.last_decrease.is_none_or(|t| now.since(t) >= spacing) {
                self.last_decrease = Some(now);
                self.decreased_since_report = true;
                self.set_target(self.target * (1.0 - 0.5 * self.loss));
            }
        }
    }

    fn update_minima(&mut self, now: Time) {
        while self
            .minima
            .front()
            .is_some_and(|m| now.since(m.0) >= INCREASE_INTERVAL)
        {
            self.minima.pop_front();
        }
        while self.minima.back().is_some_and(|m| self.target <= m.1) {
            self.minima.pop_back();
        }
        self.minima.push_back((now, self.target));
    }
}
