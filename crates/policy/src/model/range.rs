//! Which paths a model was trained on.

use serde::{Deserialize, Serialize};

/// The paths that a model was trained on: each is the least and the most, as its scenarios draw
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingRange {
    /// The rate of the slowest link, Mbit/s. Of a trace: the mean rate of its slowest and fastest
    /// ten seconds.
    pub rate_mbps: [f64; 2],
    /// What a packet and its acknowledgement take without a queue, ms.
    pub rtt_ms: [f64; 2],
    /// What the slowest link takes to send a full queue, ms; of a trace at its mean rate. `None` if
    /// no queue of the training ever drops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_ms: Option<[f64; 2]>,
    /// Random loss on the way of the data: a share of the packets.
    pub loss: [f64; 2],
}

impl TrainingRange {
    /// That each range goes from low to high, both finite.
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
