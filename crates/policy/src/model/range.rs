//! The range of paths on which a model was trained.

use serde::{Deserialize, Serialize};

/// The range of paths on which a model was trained. Each entry is the minimum and the maximum that
/// its scenarios draw.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingRange {
    /// The rate of the slowest link, in Mbit/s. A trace has the mean rates of its slowest and its
    /// fastest ten seconds.
    pub rate_mbps: [f64; 2],
    /// The RTT without queues, in ms.
    pub rtt_ms: [f64; 2],
    /// The time in ms in which the slowest link sends a full queue; a trace counts with its mean
    /// rate. `None` if a training queue never drops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_ms: Option<[f64; 2]>,
    /// The random loss of data packets, as a share.
    pub loss: [f64; 2],
}

impl TrainingRange {
    /// Checks that each range goes from low to high, and is finite.
    ///
    /// # Errors
    /// One line.
    pub(super) fn check(&self) -> Result<(), String> {
        let named = [
            ("rate_mbps", self.rate_mbps),
            ("rtt_ms", self.rtt_ms),
            ("buffer_ms", self.buffer_ms.unwrap_or_default()),
            ("loss", self.loss),
        ];
        for (name, [least, most]) in named {
            let (highest, right) = match name {
                "loss" => (1.0, "from 0 to 1"),
                _ => (f64::MAX, "finite and 0 or more"),
            };
            if !(0.0 <= least && least <= most && most <= highest) {
                return Err(format!(
                    "training.range: {name} is [{least}, {most}], must be the least and the most, {right}"
                ));
            }
        }
        Ok(())
    }
}
