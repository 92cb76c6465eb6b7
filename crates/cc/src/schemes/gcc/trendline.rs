//! Detects whether the delay is growing, by a line through the delays of the last groups and a
//! threshold that adapts (`trendline_estimator.cc`, which replaces the draft's Kalman filter; draft
//! §5.4).

use std::collections::VecDeque;

use super::arrival::Deltas;

const WINDOW: usize = 20;
const SMOOTHING: f64 = 0.9;
const GAIN: f64 = 4.0;
/// The largest number of groups by which the slope is weighted.
const MAX_DELTAS: u32 = 60;
const OVERUSE_TIME_MS: f64 = 10.0;

/// The result of the detector (draft §5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usage {
    Normal,
    Over,
    Under,
}

/// gamma, del_var_th: the threshold. It adapts so that the flow detects overuse, and still does not
/// give way for ever to a flow that fills the queue.
#[derive(Debug)]
pub(super) struct Threshold {
    pub(super) value: f64,
    updated: Option<f64>,
}

impl Threshold {
    const INITIAL_MS: f64 = 12.5;
    /// The gains per millisecond of the code; the draft's are 0.01 and 0.00018.
    const UP: f64 = 0.0087;
    const DOWN: f64 = 0.039;
    /// A trend that exceeds the threshold by more than this is a sudden drop of capacity, to which
    /// it does not adapt.
    const MAX_OFFSET_MS: f64 = 15.0;
    const MAX_STEP_MS: f64 = 100.0;
    const MIN_MS: f64 = 6.0;
    const MAX_MS: f64 = 600.0;

    pub(super) fn new() -> Threshold {
        Threshold {
            value: Self::INITIAL_MS,
            updated: None,
        }
    }

    /// Draft §5.4, Eq. 5: del_var_th += dt K (|m| - del_var_th).
    pub(super) fn update(&mut self, trend: f64, now: f64) {
        let step = (now - self.updated.unwrap_or(now)).clamp(0.0, Self::MAX_STEP_MS);
        self.updated = Some(now);
        let beyond = trend.abs() - self.value;
        if beyond > Self::MAX_OFFSET_MS {
            return;
        }
        let gain = if beyond < 0.0 { Self::DOWN } else { Self::UP };
        self.value = (self.value + gain * beyond * step).clamp(Self::MIN_MS, Self::MAX_MS);
    }
}

/// The detector.
#[derive(Debug)]
pub(super) struct Trendline {
    pub(super) threshold: Threshold,
    pub(super) usage: Usage,
    /// The trend that is compared with the threshold, in milliseconds.
    pub(super) trend: f64,
    deltas: u32,
    first_arrival: Option<f64>,
    accumulated: f64,
    smoothed: f64,
    /// The arrival and the smoothed delay of the last groups.
    history: VecDeque<(f64, f64)>,
    slope: f64,
    over_time: Option<f64>,
    over_count: u32,
}

impl Trendline {
    pub(super) fn new() -> Trendline {
        Trendline {
            threshold: Threshold::new(),
            usage: Usage::Normal,
            trend: 0.0,
            deltas: 0,
            first_arrival: None,
            accumulated: 0.0,
            smoothed: 0.0,
            history: VecDeque::with_capacity(WINDOW + 1),
            slope: 0.0,
            over_time: None,
            over_count: 0,
        }
    }

    /// A group had the difference `deltas` to the one before. The packet that ended it arrived at
    /// `arrival`.
    pub(super) fn update(&mut self, deltas: Deltas, arrival: f64) {
        self.deltas = self.deltas.saturating_add(1).min(1000);
        self.accumulated += deltas.arrival - deltas.send;
        self.smoothed = SMOOTHING * self.smoothed + (1.0 - SMOOTHING) * self.accumulated;
        let first = *self.first_arrival.get_or_insert(arrival);
        self.history.push_back((arrival - first, self.smoothed));
        if self.history.len() > WINDOW {
            self.history.pop_front();
        }
        let mut slope = self.slope;
        if self.history.len() == WINDOW {
            slope = self.fitted_slope().unwrap_or(slope);
        }
        self.detect(slope, deltas.send, arrival);
    }

    /// The slope by least squares: (send rate - capacity) / capacity.
    fn fitted_slope(&self) -> Option<f64> {
        let n = self.history.len() as f64;
        let (sum_x, sum_y) = self
            .history
            .iter()
            .fold((0.0, 0.0), |(x, y), p| (x + p.0, y + p.1));
        let (mean_x, mean_y) = (sum_x / n, sum_y / n);
        let (mut xy, mut xx) = (0.0, 0.0);
        for (x, y) in &self.history {
            xy += (x - mean_x) * (y - mean_y);
            xx += (x - mean_x) * (x - mean_x);
        }
        (xx > 0.0).then_some(xy / xx)
    }

    fn detect(&mut self, slope: f64, send_delta: f64, now: f64) {
        if self.deltas < 2 {
            self.usage = Usage::Normal;
            return;
        }
        self.trend = f64::from(self.deltas.min(MAX_DELTAS)) * slope * GAIN;
        if self.trend > self.threshold.value {
            // Before the first sample above the threshold, half of the time counts as above it.
            let time = self.over_time.map_or(send_delta / 2.0, |t| t + send_delta);
            self.over_time = Some(time);
            self.over_count += 1;
            if time > OVERUSE_TIME_MS && self.over_count > 1 && slope >= self.slope {
                (self.over_time, self.over_count) = (Some(0.0), 0);
                self.usage = Usage::Over;
            }
        } else {
            (self.over_time, self.over_count) = (None, 0);
            self.usage = if self.trend < -self.threshold.value {
                Usage::Under
            } else {
                Usage::Normal
            };
        }
        self.slope = slope;
        self.threshold.update(self.trend, now);
    }
}
