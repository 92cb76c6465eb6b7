//! The rate at which packets arrive, by a Bayesian estimate (`bitrate_estimator.cc`). Like its
//! constants, it is in milliseconds and kbit/s.

const INITIAL_WINDOW_MS: f64 = 500.0;
const WINDOW_MS: f64 = 150.0;
const UNCERTAINTY_SCALE: f64 = 10.0;
const INITIAL_VARIANCE: f64 = 50.0;
/// The variance that each sample adds, because the rate changes with time.
const PROCESS_VARIANCE: f64 = 5.0;

/// The estimate.
#[derive(Debug)]
pub(super) struct AckedBitrate {
    bytes: f64,
    window: f64,
    last: Option<f64>,
    kbps: Option<f64>,
    variance: f64,
}

impl AckedBitrate {
    pub(super) fn new() -> AckedBitrate {
        AckedBitrate {
            bytes: 0.0,
            window: 0.0,
            last: None,
            kbps: None,
            variance: INITIAL_VARIANCE,
        }
    }

    /// The estimate in bits a second.
    pub(super) fn bps(&self) -> Option<f64> {
        self.kbps.map(|kbps| kbps * 1e3)
    }

    /// `bytes` arrived at `now`.
    pub(super) fn on_arrival(&mut self, now: f64, bytes: f64) {
        let length = self.kbps.map_or(INITIAL_WINDOW_MS, |_| WINDOW_MS);
        let Some(sample) = self.sample(now, bytes, length) else {
            return;
        };
        let Some(estimate) = self.kbps else {
            self.kbps = Some(sample);
            return;
        };
        // A sample is less certain the further it is from the estimate.
        let deviation = if estimate > 0.0 {
            UNCERTAINTY_SCALE * (estimate - sample).abs() / estimate
        } else {
            0.0
        };
        let of_sample = deviation * deviation;
        let predicted = self.variance + PROCESS_VARIANCE;
        let sum = of_sample + predicted;
        self.kbps = Some((of_sample * estimate + predicted * sample) / sum);
        self.variance = of_sample * predicted / sum;
    }

    /// Returns a rate when a window is full.
    fn sample(&mut self, now: f64, bytes: f64, length: f64) -> Option<f64> {
        if self.last.is_some_and(|last| now < last) {
            (self.last, self.bytes, self.window) = (None, 0.0, 0.0);
        }
        if let Some(last) = self.last {
            self.window += now - last;
            if now - last > length {
                self.bytes = 0.0;
                self.window %= length;
            }
        }
        self.last = Some(now);
        let mut sample = None;
        if self.window >= length {
            sample = Some(8.0 * self.bytes / length);
            self.window -= length;
            self.bytes = 0.0;
        }
        self.bytes += bytes;
        sample
    }
}
